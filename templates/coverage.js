"use strict";
(() => {
  const { coverage, sources } = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const VERDICTS = ["error", "differs", "unmapped", "tested", "proved", "rejected", "none"];
  const SECTIONS = ["summary", "kernels", "kernel", "rules", "matrix", "missing", "proofs", "forms"];

  // -- the data, a bit flatter --------------------------------------------------------------------
  const kernels = coverage.operators.flatMap((operator) => operator.kernels.map((kernel) => ({
    ...kernel, operator: operator.name, source: operator.source, id: `${operator.name}.${kernel.name}`,
    verdict: kernel.verdict ?? "none", total: sum(Object.values(kernel.checks)), rows: { ...kernel.rules, ...kernel.constructs },
  })));
  const kernelById = new Map(kernels.map((kernel) => [kernel.id, kernel]));
  const rules = [
    ...coverage.rules.map((rule) => ({ ...rule, name: rule.key })),
    ...coverage.constructs.map((row) => ({ ...row, key: row.name, kind: "construct", family: "Python", reason: row.status === "exact" ? "" : row.doc })),
  ].map((rule) => ({ ...rule, state: rule.status === "unsupported" ? "unsupported" : rule.uses ? "exercised" : "never exercised" }));

  function sum(values) { return values.reduce((a, b) => a + b, 0); }

  // -- building elements --------------------------------------------------------------------------
  function el(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "onclick") node.addEventListener("click", value);
      else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  const verdict = (name, text = name) => el("span", { class: "verdict", style: `background:var(--${name})` }, text === "none" ? "not checked" : text);
  const kernelLink = (id, text = id) => kernelById.has(id) ? el("a", { href: `#/kernel/${id}` }, text) : text;
  const code = (text) => el("code", {}, text);
  const empty = (text) => el("tbody", {}, el("tr", {}, el("td", { class: "empty" }, text)));

  function links(ids, most = 6) {
    const box = el("span");
    const show = (count) => {
      box.replaceChildren(...ids.slice(0, count).flatMap((id, i) => [i ? ", " : "", kernelLink(id)]));
      if (ids.length > count) box.append(" ", el("a", { href: "#", onclick: (event) => { event.preventDefault(); show(ids.length); } }, `and ${ids.length - count} more`));
    };
    show(most);
    return box;
  }

  // -- tables that sort ----------------------------------------------------------------------------
  // A column: title, value (what it sorts by), show (what it holds), number, wide (left out on a phone).
  function sortable(table, columns, first) {
    let by = first, descending = Boolean(columns[first].number);
    let rows = [];
    const compare = (a, b) => {
      const [x, y] = [columns[by].value(a), columns[by].value(b)];
      const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
      return descending ? -order : order;
    };
    const classes = (column) => [column.number && "num", column.wide && "wide"].filter(Boolean).join(" ") || undefined;
    function draw() {
      const head = el("thead", {}, el("tr", {}, ...columns.map((column, index) => el("th", {
        scope: "col", class: classes(column), "aria-sort": index === by ? (descending ? "descending" : "ascending") : undefined,
      }, el("button", { type: "button", onclick: () => { descending = index === by ? !descending : Boolean(column.number); by = index; draw(); } }, column.title)))));
      const body = rows.length ? el("tbody", {}, ...[...rows].sort(compare).map((row) => el("tr", {}, ...columns.map((column) =>
        el("td", { class: classes(column) }, (column.show ?? ((r) => String(column.value(r))))(row)))))) : empty("Nothing fits the filters.");
      table.replaceChildren(head, body);
    }
    return (found) => { rows = found; draw(); };
  }

  function chips(box, names, counts, changed, colour) {
    const on = new Set();
    for (const name of names.filter((n) => counts.get(n))) {
      const button = el("button", { type: "button", "aria-pressed": "false", "data-name": name }, `${name === "none" ? "not checked" : name} ${counts.get(name)}`);
      button.addEventListener("click", () => {
        on.has(name) ? on.delete(name) : on.add(name);
        button.setAttribute("aria-pressed", String(on.has(name)));
        if (colour) button.style.background = button.style.borderColor = on.has(name) ? `var(--${name})` : "";
        changed();
      });
      box.append(button);
    }
    return (name) => !on.size || on.has(name);
  }

  function tally(values) {
    const counts = new Map();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    return counts;
  }
  const words = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (text, wanted) => wanted.every((word) => text.includes(word));

  // -- kernels --------------------------------------------------------------------------------------
  const machineCode = (kernel) => Object.entries(kernel.machine_code).map(([arch, found]) => `${arch}: ${Object.entries(found).map(([o, n]) => `${n} ${o}`).join(", ")}`).join("; ");
  const showKernels = sortable(byId("kernel-table"), [
    { title: "Kernel", value: (k) => k.id, show: (k) => el("span", {}, kernelLink(k.id, k.name), el("small", {}, `${k.operator} · ${k.source}:${k.line}`)) },
    { title: "Verdict", value: (k) => VERDICTS.indexOf(k.verdict), show: (k) => el("span", {}, ...(k.total ? VERDICTS.filter((v) => k.checks[v]).map((v) => verdict(v, Object.keys(k.checks).length > 1 ? `${k.checks[v]} ${v}` : v)) : [verdict("none")])) },
    { title: "Checks", number: true, value: (k) => k.total },
    { title: "Entries", number: true, wide: true, value: (k) => k.entries },
    { title: "Rules", number: true, value: (k) => Object.keys(k.rules).length },
    ...(Object.keys(coverage.machine_code).length ? [{ title: "Machine code", value: machineCode }] : []),
    { title: "In the way", wide: true, value: (k) => k.blocked_by.length, show: (k) => el("span", {}, ...k.blocked_by.slice(0, 3).map((i) => el("small", {}, `${coverage.unmapped[i].code} ${coverage.unmapped[i].reason}`))) },
  ], 0);
  const verdictOn = chips(byId("kernel-verdicts"), VERDICTS, tally(kernels.map((k) => k.verdict)), update, true);
  byId("rule-names").append(...rules.filter((rule) => rule.uses).map((rule) => el("option", { value: rule.key })));

  function chosenKernels() {
    const text = [...words(byId("kernel-text"))], used = byId("kernel-rule").value.trim().toLowerCase();
    const exact = rules.some((rule) => rule.key.toLowerCase() === used);
    const uses = (kernel) => !used || Object.keys(kernel.rows).some((row) => exact ? row.toLowerCase() === used : row.toLowerCase().includes(used));
    return kernels.filter((k) => verdictOn(k.verdict) && fits(`${k.id} ${k.source}`.toLowerCase(), text) && uses(k));
  }

  // -- rules ----------------------------------------------------------------------------------------
  const STATES = { exercised: "proved", unsupported: "unmapped", "never exercised": "never" };
  const state = (rule, more) => el("span", { class: `verdict ${more}`, style: `background:var(--${STATES[rule.state]})` }, rule.state);
  const showRules = sortable(byId("rule-table"), [
    { title: "Rule", value: (r) => r.key, show: (r) => el("span", {}, code(r.key), state(r, "narrow"), el("small", {}, r.reason || r.doc)) },
    { title: "Family", wide: true, value: (r) => r.family },
    { title: "State", wide: true, value: (r) => r.state, show: (r) => state(r, "") },
    { title: "Uses", number: true, value: (r) => r.uses },
    { title: "Kernels", number: true, value: (r) => r.kernels.length, show: (r) => r.kernels.length ? el("a", { href: "#/kernels", onclick: () => { byId("kernel-rule").value = r.key; update(); } }, String(r.kernels.length)) : "0" },
    { title: "Where", wide: true, value: (r) => r.kernels[0] ?? "", show: (r) => links(r.kernels, 3) },
  ], 3);
  const kinds = [...new Set(rules.map((rule) => rule.kind))];
  const KINDS = { operation: "operations of cuda.tile", method: "methods and properties", operator: "operators of Python", builtin: "built-in functions", function: "other functions", construct: "constructs of Python" };
  byId("rule-kind").append(el("option", { value: "" }, "all"), ...kinds.map((kind) => el("option", { value: kind }, KINDS[kind] ?? kind)));
  const stateOn = chips(byId("rule-states"), ["exercised", "never exercised", "unsupported"], tally(rules.map((r) => r.state)), update, false);

  function chosenRules() {
    const text = words(byId("rule-text")), kind = byId("rule-kind").value;
    return rules.filter((r) => stateOn(r.state) && (!kind || r.kind === kind) && fits(`${r.key} ${r.family} ${r.doc} ${r.reason}`.toLowerCase(), text));
  }

  // -- matrix ---------------------------------------------------------------------------------------
  function drawMatrix(shownRules, shownKernels) {
    const ruleText = words(byId("matrix-rule")), kernelText = words(byId("matrix-kernel"));
    const columns = shownKernels.filter((k) => fits(`${k.id} ${k.source}`.toLowerCase(), kernelText));
    const uses = (rule) => columns.some((kernel) => kernel.rows[rule.key]);
    const rows = shownRules.filter((r) => fits(`${r.key} ${r.family} ${r.doc}`.toLowerCase(), ruleText) && (byId("matrix-all").checked || uses(r)));
    byId("matrix-count").textContent = `${rows.length} rules × ${columns.length} kernels`;
    const order = byId("matrix-order").value, here = (rule) => columns.filter((kernel) => kernel.rows[rule.key]);
    if (order === "name") rows.sort((a, b) => a.key.localeCompare(b.key, "en"));
    if (order === "kernels") rows.sort((a, b) => here(b).length - here(a).length);
    if (order === "uses") rows.sort((a, b) => sum(here(b).map((k) => k.rows[b.key])) - sum(here(a).map((k) => k.rows[a.key])));
    if (!rows.length || !columns.length) { byId("matrix-table").replaceChildren(empty("Nothing fits the filters.")); return; }
    const most = Math.log(1 + Math.max(...columns.map((k) => Math.max(1, ...Object.values(k.rows)))));
    const cell = (rule, kernel) => {
      const count = kernel.rows[rule.key];
      if (!count) return el("td");
      const strength = 35 + Math.round(65 * Math.log(1 + count) / most);
      const colour = rule.status === "unsupported" ? "unmapped" : "proved";
      return el("td", {}, el("a", {
        href: `#/kernel/${kernel.id}/${encodeURIComponent(rule.key)}`, title: `${rule.key} in ${kernel.id}: ${count}`,
        style: `--cell:color-mix(in srgb, var(--${colour}) ${strength}%, var(--never))`,
      }, String(count)));
    };
    byId("matrix-table").replaceChildren(
      el("thead", {}, el("tr", {}, el("th"), ...columns.map((k) => el("th", { scope: "col" }, el("a", { href: `#/kernel/${k.id}`, title: k.id }, `${k.name} · ${k.operator}`))))),
      el("tbody", {}, ...rows.map((rule) => el("tr", {}, el("th", { scope: "row", title: rule.doc || rule.reason }, rule.key), ...columns.map((k) => cell(rule, k))))));
  }

  // -- what is in the way, proofs, forms ------------------------------------------------------------
  const showMissing = sortable(byId("missing-table"), [
    { title: "Reason", value: (u) => u.reason, show: (u) => el("span", {}, verdict(u.verdict, u.code), " ", u.reason, el("small", {}, u.help)) },
    { title: "Kernels", number: true, value: (u) => u.kernels.length },
    { title: "Alone", number: true, value: (u) => u.alone },
    { title: "Checks", number: true, wide: true, value: (u) => u.checks },
    { title: "Where", value: (u) => u.kernels[0] ?? "", show: (u) => el("span", {}, links(u.kernels, 4), el("small", {}, u.places.slice(0, 3).join(", "))) },
  ], 1);
  const showHoles = sortable(byId("hole-table"), [
    { title: "Construct", value: (h) => h.name, show: (h) => el("span", {}, code(h.name), el("small", {}, [h.kind, h.code, h.models.join(", ")].filter(Boolean).join(" · "))) },
    { title: "Checks", number: true, value: (h) => h.uses },
    { title: "Open", number: true, value: (h) => h.open },
    { title: "Filled", number: true, value: (h) => h.filled },
    { title: "Raised", number: true, wide: true, value: (h) => h.raised },
    { title: "Tokens", number: true, wide: true, value: (h) => h.tokens },
    { title: "Cost", number: true, wide: true, value: (h) => h.cost },
    { title: "Where", wide: true, value: (h) => h.kernels[0] ?? "", show: (h) => el("span", {}, links(h.kernels, 3), el("small", {}, h.places.slice(0, 3).join(", "))) },
  ], 1);
  const showProofs = sortable(byId("proof-table"), [
    { title: "Equivalence", value: (e) => e.name, show: (e) => el("span", {}, code(e.name), el("small", {}, e.justification)) },
    { title: "Uses", number: true, value: (e) => e.uses },
    { title: "Checks", number: true, value: (e) => e.checks },
    { title: "Kernels", number: true, value: (e) => e.kernels.length },
    { title: "Where", wide: true, value: (e) => e.kernels[0] ?? "", show: (e) => links(e.kernels, 3) },
  ], 2);
  const showForms = sortable(byId("form-table"), [
    { title: "Operation", value: (f) => f.key, show: (f) => el("span", {}, code(f.key), el("small", {}, f.family), el("span", { class: "narrow" }, "→ ", code(f.rust))) },
    { title: "Rust", wide: true, value: (f) => f.rust, show: (f) => code(f.rust) },
    { title: "Uses", number: true, value: (f) => f.uses },
    { title: "Kernels", number: true, value: (f) => f.kernels.length },
    { title: "Rules", wide: true, value: (f) => f.rules.join(" "), show: (f) => el("small", {}, f.rules.join(", ")) },
  ], 2);
  const showCode = sortable(byId("code-table"), [
    { title: "Architecture", value: (m) => m[0] },
    ...["identical", "differs", "refused"].map((o) => ({ title: o, number: true, value: (m) => m[1][o] ?? 0 })),
  ], 0);

  // -- one kernel: Python beside Rust ------------------------------------------------------------------
  let shown = null; // { kernel, source, data }
  let pinned = "";

  function openKernel(id, rule) {
    const kernel = kernelById.get(id), source = sources[kernel?.operator], data = source?.kernels[kernel.name];
    byId("source-title").replaceChildren(kernel ? `${kernel.name} ` : `There is no kernel ${id}`);
    byId("python").replaceChildren(); byId("rust").replaceChildren(); byId("source-facts").replaceChildren();
    if (!kernel) return;
    byId("source-facts").append(el("div", { class: "facts" }, ...(kernel.total ? VERDICTS.filter((v) => kernel.checks[v]).map((v) => verdict(v, `${kernel.checks[v]} ${v}`)) : [verdict("none")]),
      el("span", {}, `${kernel.source}:${kernel.line}`),
      Object.keys(kernel.machine_code).length ? el("span", {}, `machine code ${machineCode(kernel)}`) : null));
    const proofs = Object.entries(kernel.equivalences).map(([name, count]) => `${name} ×${count}`).join(", ");
    byId("source-proofs").textContent = proofs ? `The proofs used ${proofs}.` : "";
    for (const i of kernel.blocked_by) byId("source-facts").append(el("p", { class: "note" }, verdict(coverage.unmapped[i].verdict, coverage.unmapped[i].code), ` ${coverage.unmapped[i].reason}`));
    if (!data) return;
    shown = { kernel, source, data };
    pinned = "";
    byId("source-entry").replaceChildren(...(data.entries.length ? data.entries : [["no entry", "", []]]).map(([name], i) => el("option", { value: i }, name)));
    const names = Object.keys(kernel.rows).sort();
    byId("source-rule").replaceChildren(el("option", { value: "" }, `all ${names.length}`), ...names.map((name) => el("option", { value: name }, `${name} ×${kernel.rows[name]}`)));
    byId("source-rule").value = names.includes(rule) ? rule : "";
    drawPython();
    drawRust();
    markRule(true);
  }

  function line(number, [text, runs], place) {
    const content = el("span");
    let at = 0;
    for (const run of runs ? runs.split(" ") : []) {
      const kind = /^[a-z]/.test(run) ? run[0] : "", size = Number(kind ? run.slice(1) : run);
      const piece = text.slice(at, at + size);
      content.append(kind ? el("span", { class: kind }, piece) : piece);
      at += size;
    }
    content.append(text.slice(at));
    return el("div", { class: place ? "row linked" : "row", "data-place": place || undefined, "data-number": number }, el("span", { class: "number" }, String(number)), content);
  }

  function drawPython() {
    const { source, data } = shown, rust = new Set(source.from.filter(Boolean).map((place) => place.join(":")));
    let file = -1, box = byId("python");
    for (const [index, first, last] of data.parts) {
      box.append(index === file ? el("div", { class: "gap" }) : el("div", { class: "file" }, source.files[index]));
      file = index;
      for (let number = first; number <= last; number++) {
        const place = `${index}:${number}`;
        box.append(line(number, source.python[index][number] ?? [""], rust.has(place) || data.uses[place] ? place : ""));
      }
    }
  }

  function drawRust() {
    const { source, data } = shown, [name, condition, ranges] = data.entries[Number(byId("source-entry").value)] ?? ["", "", []];
    byId("source-condition").textContent = condition ? `This entry is taken when ${condition}.` : "";
    byId("rust").replaceChildren(el("div", { class: "file" }, `${shown.kernel.operator}/kernel.rs`));
    ranges.forEach(([first, last], i) => {
      if (i) byId("rust").append(el("div", { class: "gap" }));
      for (let number = first; number <= last; number++) {
        const place = source.from[number - 1];
        byId("rust").append(line(number, source.rust[number - 1], place ? place.join(":") : ""));
      }
    });
    mark();
    scrollTo(byId("rust"), [...byId("rust").children].find((row) => row.textContent.includes(`fn ${name}`)), 8);
  }

  function rowsAt(place) { return place ? document.querySelectorAll(`.row[data-place="${place}"]`) : []; }

  function mark(hovered = "") {
    for (const row of document.querySelectorAll(".row.same, .row.pinned")) row.classList.remove("same", "pinned");
    for (const row of rowsAt(pinned)) row.classList.add("pinned");
    for (const row of rowsAt(hovered)) row.classList.add("same");
    if (hovered || pinned) tell(hovered || pinned);
  }

  function tell(place) {
    const [file, number] = place.split(":"), uses = shown.data.uses[place] ?? [];
    const named = (table) => uses.filter(([t]) => t === table).map(([, name, count]) => el("span", { class: "use" }, code(name), count > 1 ? ` ×${count}` : "", note(table, name)));
    const parts = [["r", "Rules"], ["o", "Override"], ["f", "Rust"], ["c", "Python"]].filter(([t]) => named(t).length);
    byId("line-facts").replaceChildren(el("b", {}, `${shown.source.files[file]}:${number}`),
      ...(parts.length ? parts.map(([table, title]) => el("div", { class: "uses" }, el("i", {}, title), ...named(table))) : [" — no rule of its own"]));
  }

  function note(table, name) {
    if (table === "f") { const form = coverage.forms.find((f) => f.key === name); return form ? el("span", { class: "wide" }, " → ", code(form.rust)) : null; }
    if (table === "o") { const hole = coverage.holes.find((h) => h.overrides.includes(name)); return hole ? el("span", { class: "wide" }, ` fills ${hole.name}, by ${hole.models.join(", ")}`) : null; }
    const rule = table === "r" ? rules.find((r) => r.key === name) : null;
    return rule ? el("span", { class: "wide" }, ` ${rule.reason || rule.doc}`) : null;
  }

  function scrollTo(box, row, part = 3) {
    if (row) box.scrollTop += row.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / part;
  }

  function markRule(scroll) {
    const name = byId("source-rule").value;
    const places = Object.entries(shown.data.uses).filter(([, rows]) => rows.some(([, row]) => row === name)).map(([place]) => place);
    for (const row of document.querySelectorAll(".row.rule")) row.classList.remove("rule");
    for (const place of name ? places : []) for (const row of rowsAt(place)) row.classList.add("rule");
    if (name && scroll && places.length) {
      pinned = places[0];
      mark();
      for (const box of [byId("python"), byId("rust")]) scrollTo(box, box.querySelector(".row.pinned"));
    }
  }

  for (const box of [byId("python"), byId("rust")]) {
    const other = box.id === "python" ? byId("rust") : byId("python");
    const place = (event) => event.target.closest(".row.linked")?.dataset.place ?? "";
    box.addEventListener("mouseover", (event) => mark(place(event)));
    box.addEventListener("mouseleave", () => mark());
    box.addEventListener("click", (event) => {
      pinned = place(event) === pinned ? "" : place(event);
      mark();
      scrollTo(other, other.querySelector(".row.pinned"));
    });
  }
  byId("source-entry").addEventListener("change", () => { drawRust(); markRule(false); });
  byId("source-rule").addEventListener("change", () => markRule(true));

  // -- where we are -----------------------------------------------------------------------------------
  function update() {
    const shownKernels = chosenKernels(), shownRules = chosenRules();
    showKernels(shownKernels);
    byId("kernel-count").textContent = `${shownKernels.length} of ${kernels.length}`;
    showRules(shownRules);
    byId("rule-count").textContent = `${shownRules.length} of ${rules.length}`;
    if (!byId("matrix").hidden) drawMatrix(shownRules, shownKernels);
    const text = words(byId("form-text"));
    const forms = coverage.forms.filter((f) => fits(`${f.key} ${f.rust} ${f.rules.join(" ")} ${f.family}`.toLowerCase(), text));
    showForms(forms);
    byId("form-count").textContent = `${forms.length} of ${coverage.forms.length}`;
  }

  function route() {
    const [section, kernel, rule] = location.hash.slice(1).split("/").slice(1);
    const current = SECTIONS.includes(section) ? section : "summary";
    for (const name of SECTIONS) byId(name).hidden = name !== current;
    for (const link of document.querySelectorAll("nav a")) {
      const here = link.hash === `#/${current === "kernel" ? "kernels" : current}`;
      here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
      if (here) link.scrollIntoView({ block: "nearest", inline: "center" });
    }
    if (current === "kernel") openKernel(decodeURIComponent(kernel ?? ""), decodeURIComponent(rule ?? ""));
    if (current === "matrix") drawMatrix(chosenRules(), chosenKernels());
    window.scrollTo(0, 0);
  }

  for (const id of ["kernel-text", "kernel-rule", "rule-text", "rule-kind", "form-text", "matrix-rule", "matrix-kernel", "matrix-all", "matrix-order"]) byId(id).addEventListener("input", update);
  showMissing(coverage.unmapped);
  if (!coverage.unmapped.length) byId("missing-table").replaceChildren(empty("Nothing: every kernel is proved, or refused by the reference compiler itself."));
  byId("missing-count").textContent = `${coverage.unmapped.length} reasons`;
  showHoles(coverage.holes);
  if (!coverage.holes.length) byId("hole-table").replaceChildren(empty("None: every construct has a rule."));
  byId("hole-count").textContent = `${coverage.totals.holes_filled} of ${coverage.totals.holes} filled, ${coverage.totals.llm_tokens} tokens, $${coverage.totals.llm_cost}`;
  showProofs(coverage.equivalences);
  if (Object.keys(coverage.machine_code).length) { byId("code-title").hidden = false; showCode(Object.entries(coverage.machine_code)); } else byId("code-table").parentElement.hidden = true;
  window.addEventListener("hashchange", route);
  update();
  route();
})();
