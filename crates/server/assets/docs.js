// Draws /openapi.json as a page. Every text goes in as text, never as markup.
"use strict";

const METHODS = ["get", "put", "post", "delete"];
// What stands for a value in the examples, by the name of its field.
const SAMPLES = {
  relation: "like", object: "post:42", subject: "alice", viewer: "alice", objects: ["post:42"], relations: ["like"],
  op: "relate", role: "service", status: "published", atomic: true,
};
// Fields that an example shows though they may be left out.
const SHOWN = ["viewer", "relations", "atomic", "status"];
const DEPTH_MAX = 3;
let contract;

/** Makes an element; `parts` are texts and elements. */
function make(tag, attributes, ...parts) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...parts.filter((part) => part !== undefined && part !== null));
  return element;
}

/** A text whose `quoted` parts become code. */
function prose(text) {
  return (text || "").split("`").map((part, at) => (at % 2 ? make("code", null, part) : part));
}

function resolve(node) {
  while (node && node.$ref) {
    node = node.$ref.slice(2).split("/").reduce((inner, key) => inner && inner[key], contract);
  }
  return node || {};
}

/** Leaves out the `null` of something that may be absent. */
function plain(schema) {
  const node = resolve(schema);
  const options = (node.oneOf || node.anyOf || []).filter((option) => option.type !== "null");
  return options.length === 1 ? resolve(options[0]) : node;
}

function typeName(schema) {
  const node = plain(schema);
  const options = (node.oneOf || node.anyOf || []).filter((option) => option.type !== "null");
  if (options.length) return options.map(typeName).join(" or ");
  const types = [].concat(node.type || "any").filter((type) => type !== "null");
  if (types[0] === "array") return `list of ${typeName(node.items)}`;
  if (types[0] === "object" && node.additionalProperties) return `map of ${typeName(node.additionalProperties)}`;
  return node.format === "date-time" ? "time" : types.join(" or ");
}

/** Where the fields of a schema are: its own, its items', its map's. */
function fieldsOf(schema) {
  const node = plain(schema);
  if (node.properties) return node;
  const inner = node.items || (typeof node.additionalProperties === "object" && node.additionalProperties);
  return inner ? fieldsOf(inner) : null;
}

function bounds(schema) {
  const node = plain(schema);
  const parts = [];
  if (node.minimum !== undefined && node.maximum !== undefined) parts.push(`${node.minimum} to ${node.maximum}`);
  if (node.maxItems !== undefined) parts.push(`at most ${node.maxItems}`);
  if (node.default !== undefined) parts.push(`default ${node.default}`);
  return parts.length ? ` (${parts.join(", ")})` : "";
}

function line(name, required, schema, description, depth) {
  const shown = make("span", { class: "name" }, name, required ? make("b", { title: "required" }, " *") : null);
  return make("tr", null,
    make("td", { class: `deep-${depth}` }, shown),
    make("td", null, make("span", { class: "type" }, typeName(schema))),
    make("td", null, ...prose(description), bounds(schema)));
}

function lines(schema, depth) {
  const node = fieldsOf(schema);
  if (!node || depth > DEPTH_MAX) return [];
  const required = node.required || [];
  return Object.entries(node.properties).flatMap(([name, field]) => [
    line(name, required.includes(name), field, field.description || plain(field).description, depth),
    ...lines(field, depth + 1),
  ]);
}

function table(rows) {
  return rows.length ? make("table", null, make("tbody", null, ...rows)) : null;
}

/** A small value that the schema accepts. */
function sample(schema, name) {
  if (name in SAMPLES) return SAMPLES[name];
  const node = plain(schema);
  if (node.default !== undefined && node.default !== null) return node.default;
  const type = [].concat(node.type || "object")[0];
  if (type === "array") return [sample(node.items, "")];
  if (type === "integer" || type === "number") return 1;
  if (type === "boolean") return true;
  if (type === "string") return "…";
  const given = ([field]) => (node.required || []).includes(field) || SHOWN.includes(field);
  const fields = Object.entries(node.properties || {}).filter(given);
  return Object.fromEntries(fields.map(([field, inner]) => [field, sample(inner, field)]));
}

function isOpen(call) {
  return (call.security || []).some((way) => Object.keys(way).length === 0);
}

function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function parameters(call, place) {
  return (call.parameters || []).map(resolve).filter((parameter) => parameter.in === place);
}

/** The path with its parameters filled in, and the query that cannot be left out. */
function address(path, call, value) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(value(name)).replaceAll("%3A", ":"));
  const query = parameters(call, "query").map(({ name }) => [name, value(name)]).filter(([, text]) => text);
  return filled + (query.length ? `?${new URLSearchParams(query)}` : "");
}

function bodyOf(call) {
  return ((call.requestBody || {}).content || {})["application/json"];
}

function curl(method, path, call) {
  const required = new Set((call.parameters || []).map(resolve).filter((p) => p.required).map((p) => p.name));
  const value = (name) => (required.has(name) ? [].concat(SAMPLES[name] || `${name.toUpperCase()}`).join(",") : "");
  const verb = method === "get" ? "" : `-X ${method.toUpperCase()} `;
  const parts = [`curl ${verb}${quoted(location.origin + address(path, call, value))}`];
  // Double quotes, so that the shell puts the key in.
  if (!isOpen(call)) parts.push(`-H "Authorization: Bearer $TALLY_KEY"`);
  if (parameters(call, "header").some(({ name }) => name === "Idempotency-Key")) {
    parts.push(`-H "Idempotency-Key: $(uuidgen)"`);
  }
  const body = bodyOf(call);
  const content = body && sample(body.schema, "");
  if (content && Object.keys(content).length) {
    parts.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(content))}`);
  }
  return parts.join(" \\\n  ");
}

function copyable(text) {
  const code = make("pre", null, text);
  const button = make("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    } catch {
      // Without TLS there is no clipboard; selected text can be copied by hand.
      getSelection().selectAllChildren(code);
    }
  });
  return make("div", { class: "curl" }, code, button);
}

/** A form that sends a read and shows what comes back. */
function trial(path, call) {
  const fields = (call.parameters || []).map(resolve).filter((parameter) => parameter.in !== "header");
  const inputs = new Map(fields.map(({ name, required }) => {
    const input = make("input", { placeholder: required ? "required" : "", spellcheck: "false", autocomplete: "off" });
    if (required) input.value = [].concat(SAMPLES[name] || "").join(",");
    return [name, input];
  }));
  const answer = make("pre", { class: "answer", hidden: "" });
  const form = make("form", { class: "try" },
    ...[...inputs].map(([name, input]) => make("label", null, name, input)),
    make("button", { type: "submit" }, "Send"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const key = document.getElementById("key").value.trim();
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    answer.hidden = false;
    answer.textContent = "…";
    try {
      const response = await fetch(address(path, call, (name) => inputs.get(name).value.trim()), { headers });
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* Not JSON: as it came. */ }
      answer.textContent = `${response.status} ${response.statusText}\n\n${shown}`;
    } catch (error) {
      answer.textContent = `The server did not answer: ${error.message}`;
    }
  });
  return [make("h3", null, "Try it"), form, answer];
}

function answers(call) {
  return Object.entries(call.responses || {}).flatMap(([status, reference]) => {
    const response = resolve(reference);
    const [kind, media] = Object.entries(response.content || {})[0] || [];
    // Problems are the same everywhere; one line says so.
    const isProblem = kind === "application/problem+json";
    const fields = media && !isProblem ? table(lines(media.schema, 0)) : null;
    return [make("h3", null, `Answer ${status} `, kind && make("code", null, kind)),
      make("p", null, ...prose(response.description)), fields];
  });
}

function drawCall({ method, path, call, id }) {
  const marked = path.split(/(\{\w+\})/).map((part) => (part.startsWith("{") ? make("i", null, part) : part));
  const params = (call.parameters || []).map(resolve);
  const body = bodyOf(call);
  const streams = JSON.stringify(call.responses || {}).includes("text/event-stream");
  const inside = [
    call.description ? make("p", null, ...prose(call.description)) : null,
    ...(params.length
      ? [make("h3", null, "Parameters"), table(params.map((p) => line(p.name, p.required, p.schema, p.description, 0)))]
      : []),
    ...(body ? [make("h3", null, "Body ", make("code", null, "application/json")), table(lines(body.schema, 0))] : []),
    ...answers(call),
    make("h3", null, "From a shell"),
    copyable(curl(method, path, call)),
    ...(method === "get" && !streams ? trial(path, call) : []),
  ];
  return make("details", { class: "call", id },
    make("summary", null,
      make("span", { class: `method ${method}` }, method.toUpperCase()),
      make("span", { class: "path" }, ...marked),
      make("span", { class: "what" }, call.summary || "")),
    make("div", { class: "inside" }, ...inside.filter(Boolean)));
}

function draw() {
  document.getElementById("version").textContent = contract.info.version;
  document.getElementById("about").textContent = contract.info.description || "";
  const calls = Object.entries(contract.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => {
      const call = item[method];
      return { method, path, call, id: call.operationId || `${method}${path}`, tag: (call.tags || ["Other"])[0] };
    }));
  const named = (contract.tags || []).map((tag) => tag.name);
  const groups = [...new Set([...named, ...calls.map((entry) => entry.tag)])];
  const toc = document.getElementById("toc");
  const page = document.getElementById("calls");
  page.replaceChildren();
  for (const group of groups) {
    const own = calls.filter((entry) => entry.tag === group);
    if (!own.length) continue;
    const about = (contract.tags || []).find((tag) => tag.name === group);
    page.append(make("section", { class: "group" },
      make("h2", null, group), make("p", null, ...prose(about && about.description)), ...own.map(drawCall)));
    toc.append(make("section", null, make("h2", null, group), make("ul", null, ...own.map((entry) =>
      make("li", null, make("a", { href: `#${entry.id}`, title: entry.path },
        make("span", { class: `method ${entry.method}` }, entry.method.toUpperCase()),
        make("span", null, entry.call.summary || entry.path)))))));
  }
}

/** Opens the call that the address names. */
function follow() {
  const call = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (call && call.tagName === "DETAILS") {
    call.open = true;
    call.scrollIntoView();
  }
}

/** Shows only calls with the words that were typed. */
function filter(event) {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hides = (element) => !words.every((word) => element.textContent.toLowerCase().includes(word));
  for (const call of document.querySelectorAll(".call")) {
    const hidden = hides(call.querySelector("summary"));
    call.hidden = hidden;
    document.querySelector(`#toc a[href="#${CSS.escape(call.id)}"]`).parentElement.hidden = hidden;
  }
  for (const group of document.querySelectorAll(".group, #toc section")) {
    group.hidden = !group.querySelector(".call:not([hidden]), li:not([hidden])");
  }
}

async function start() {
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`status ${response.status}`);
    contract = await response.json();
  } catch (error) {
    document.getElementById("state").textContent = `The contract could not be read: ${error.message}`;
    return;
  }
  draw();
  follow();
  addEventListener("hashchange", follow);
  document.getElementById("filter").addEventListener("input", filter);
}

start();
