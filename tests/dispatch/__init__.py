"""Random calls: whatever a launch would take is what the reference compiles for exactly that call."""
