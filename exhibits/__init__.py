"""What readers see: one file a chapter, functions that run snippets and draw,
print or return numbers.
"""
