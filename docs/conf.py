"""How Sphinx builds the site: ``sphinx-build -W --keep-going -b html docs docs/_build`` (extra ``[docs]``).

Nothing is fetched, neither to build the pages nor to read them: no inventories of other projects, no web fonts, no
scripts from elsewhere. Formulas are pictures that are drawn here (``_ext/formulas.py``).
"""

import sys
from pathlib import Path

from mgvbp import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "mgvbp"
author = "The mgvbp developers"
copyright = author  # noqa: A001  (Sphinx calls it so)
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "docstrings",
    "formulas",
    "pages",
]
exclude_patterns = ["_build", "_ext"]

# guides are Markdown; their headings can be linked to, as GitHub does it
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
myst_url_schemes = ["http", "https"]

# docstrings are numpydoc and say the types; signatures without them fit on a phone
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
maximum_signature_line_length = 80
add_module_names = False
default_role = "py:obj"
python_display_short_literal_types = True

html_theme = "furo"
html_title = f"mgvbp {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "svg"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# the prompts of a doctest are not copied, nor is its output
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
