"""The methods in plain NumPy, line by line from the formulas: slow, the oracle of the tests.

Nothing here shares feature or distance code with the fast engine.
"""
