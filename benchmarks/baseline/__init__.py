"""What lithify is measured against: code that other people would have written by hand."""
