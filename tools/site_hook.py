"""Makes the site one that the agent can serve under a strict policy: no script and no style inside a page. And one that can
be searched where no server is: browsers start no worker of a page that lies on a disk, and there `iframe-worker` does.

MkDocs calls it (`hooks:` in mkdocs.yml)."""

import hashlib
import os
import pathlib
import re
import shutil

ROOT = pathlib.Path(__file__).parents[1]
# The theme itself would load it from elsewhere.
SHIM = ROOT / "web/node_modules/iframe-worker/shim/index.js"
INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
ALIGNED = re.compile(r' style="text-align: (\w+);"')


def on_post_build(config):
    site = pathlib.Path(config["site_dir"])
    for page in site.rglob("*.html"):
        text = INLINE.sub(lambda found: moved(found[1], page, site), page.read_text())
        page.write_text(ALIGNED.sub(r' align="\1"', text))
    shutil.copy(SHIM, site / "assets/javascripts/iframe-worker.js")
    # Of use to search engines and to those who mend the theme.
    for left in (*site.glob("sitemap.xml*"), *site.rglob("*.map")):
        left.unlink()


def moved(script, page, site):
    """The same script in a file of its own, which the pages share."""
    file = site / f"assets/javascripts/inline.{hashlib.sha256(script.encode()).hexdigest()[:8]}.js"
    file.write_text(script)
    return f'<script src="{os.path.relpath(file, page.parent)}"></script>'
