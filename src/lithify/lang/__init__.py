"""The language: types, terms, patterns, scalar operators, text syntax and the Python front end's term builders."""
