"""What the C-like targets share: index forms, values, statements and kernels as C text. A dialect is data."""
