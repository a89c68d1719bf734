"""What could come next in a command line that somebody is typing. kubectl 1.26 and newer, and our own scripts
for shells, ask for it."""
