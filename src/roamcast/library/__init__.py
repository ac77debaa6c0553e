"""Roamcast from Python. `roamcast/__init__.py` lists what is public; here it is made from the rooms below."""
