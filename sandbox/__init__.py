"""Everything inside a turn. Nothing here may import `runtime`: these files go into the image alone."""
