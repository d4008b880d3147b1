"""Everything inside a turn. Nothing here may import `runtime`: these files are copied into the image alone."""
