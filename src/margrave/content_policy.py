"""The Content-Security-Policy of every HTML page."""

#: A page may use its own styles and embedded pictures: no script runs, nothing is loaded, no form is sent.
CONTENT_POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline';"
    " img-src data:; base-uri 'none'; form-action 'none'\">"
)
