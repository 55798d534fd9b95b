"""Prompts that have versions: read, proved, looked up by name, put into a request.

``template`` is the sandbox and the one place that knows Jinja, ``rendering`` what it may cost;
``variables`` checks values; ``definition`` is a prompt's content and ``frontmatter`` its form as a
file; ``book`` the index of all; ``apply`` what a prompt makes of a request.
"""
