"""As much of PyCUDA as a placeholder touches."""
