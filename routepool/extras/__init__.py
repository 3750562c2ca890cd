"""Optional parts, one file each: the only place that imports optional packages."""
