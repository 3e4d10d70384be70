"""What the labs share."""
