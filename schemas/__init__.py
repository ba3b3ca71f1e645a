"""What callers see: the request and answer models of every tool, the envelope around answers, and the catalog.

Start with ``catalog`` (names only, cheap to import), then ``wire`` (how our models differ from plain pydantic ones).
``validation`` judges a request, ``publication`` makes the JSON Schemas, ``envelope`` wraps an answer.  Nothing here
behaves: no files, no processes, no state; and nothing of the other packages is imported.
"""
