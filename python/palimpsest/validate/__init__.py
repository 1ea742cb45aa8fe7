"""Real drives beside their presets: published figures, simulated ones, and whether these are within a bar.

Tables are data (`truth`), each of a form (`running`); a row is a run of the preset that models the drive.
"""
