"""The one schema of everything observable, its writer and its reader."""
