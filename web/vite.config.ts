import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

const kTypes: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

function typeOf(file: string): string {
  const type = kTypes[file.slice(file.lastIndexOf(".") + 1)];
  if (!type) throw new Error(`${file}: vite.config.ts does not say what type such a file has`);
  return type;
}

/// Writes the C++ source that holds the built files: src/cli/berth-serve/page_files.h has what it defines.
function embed(source: string): Plugin {
  return {
    name: "embed",
    writeBundle({ dir }, bundle) {
      const files = Object.keys(bundle).sort();
      const held = files.map(
        (file, i) => `__asm__(
    ".pushsection .rodata\\n"
    "page_${i}: .incbin \\"${resolve(dir ?? ".", file)}\\"\\n"
    "page_${i}_end: .byte 0\\n"
    ".popsection\\n");
extern "C" const char page_${i}[], page_${i}_end[];
`,
      );
      const rows = files.map((file, i) => {
        const path = file === "index.html" ? "/" : `/${file}`;
        return `    {"${path}", "${typeOf(file)}", page_${i}, page_${i}_end},\n`;
      });
      writeFileSync(
        source,
        `#include "page_files.h"\n\n${held.join("")}
namespace berth::serve {
const std::vector<PageFile>& page_files() {
  static const std::vector<PageFile> files{\n${rows.join("")}  };
  return files;
}
}  // namespace berth::serve\n`,
      );
    },
  };
}

const source = process.env.BERTH_PAGE_SOURCE;

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  plugins: source ? [embed(source)] : [],
});
