"""One method, one file: copy the file, it needs nothing but torch."""
