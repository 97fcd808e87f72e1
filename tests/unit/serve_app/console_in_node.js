// Just enough of a page for the console's script to run in node: R holds the responses by path.
class Node_ {
  constructor(tag) { this.tag = tag; this.inside = []; this.options = [{}]; this.value = ""; }
  append(...nodes) { this.inside.push(...nodes); }
  setAttribute() {}
  replaceChildren(...nodes) { this.inside = nodes; }
  get textContent() { return this.inside.map((n) => n instanceof Node_ ? n.textContent : String(n)).join(" "); }
  set textContent(text) { this.inside = [text]; }
}
const nodes = {};
globalThis.document = { querySelector: (s) => nodes[s] ??= new Node_(s), createElement: (t) => new Node_(t) };
globalThis.sessionStorage = { getItem: () => null, setItem() {} };
globalThis.FormData = class { get() { return null; } };
globalThis.fetch = async (path) => ({ ok: path in R, status: 404, json: async () => R[path] || { detail: `no ${path}` } });
globalThis.press = async (value) => {
  await nodes["#ask"].onsubmit({ preventDefault() {}, target: {}, submitter: { value } });
  console.log(nodes["#out"].textContent);
};
