"""The colours of figures, and the size of their text: every figure depends on this file."""

# matplotlib's colour as it stands in SVG -> its CSS variable
ROLES = {
    "#000000": "--ink",
    "#ffffff": "--paper",
    "#808080": "--muted",
    "#0060a8": "--blue",
    "#c44e00": "--orange",
    "#007a5a": "--green",
    "#a3477f": "--purple",
    "#8a6400": "--ochre",
    "#5f6f7f": "--slate",
}
SIZE = 10.5  # points; 12 px on the page where a figure is as wide as a phone
