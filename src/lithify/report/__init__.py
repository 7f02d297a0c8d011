"""Reports: derivations as pages of documentation, and pictures of what was recorded."""
