"""Real drives beside their presets: figures that others published, ours, and whether ours are within a bar.

Tables are data (`truth`), each of a form (`forms`); a row of one is a run of the preset that models its drive.
"""
