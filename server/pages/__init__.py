"""The pages: parse, authorise, render.

Templates decide nothing: what they show is worked out here and in the services.
"""
