"""The front doors: how people and programs reach the bridge.  None has logic of its own."""
