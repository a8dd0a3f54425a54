// Draws the data of the page: a profile, or a model.  Names come from models, so they go into the
// page as text only, never as markup.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

// element("div", {class: "x"}, "text", child, ..)
function element(name, attributes, ...inside) {
    const e = name.startsWith("svg:") ? document.createElementNS(SVG, name.slice(4))
                                      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {}))
        if (typeof value === "function")
            e.addEventListener(key, value);
        else if (value !== null && value !== undefined && value !== false)
            e.setAttribute(key, value);
    e.append(...inside.filter(x => x !== null && x !== undefined));
    return e;
}

// ---- numbers ----

const digits = (v, n) => v.toLocaleString("en", {maximumSignificantDigits: n, useGrouping: v >= 10000});

function scaled(v, units, step) {
    let i = 0;
    while (v >= step && i + 1 < units.length)
        v /= step, i++;
    return `${digits(v, v >= 1000 ? 4 : 3)} ${units[i]}`;
}

const bytesText = v => scaled(v, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);
const timeText = us => us >= 1 || us === 0 ? scaled(us, ["µs", "ms", "s"], 1000) : `${digits(us * 1000, 3)} ns`;
const rateText = v => scaled(v, ["/s", "k/s", "M/s", "G/s", "T/s"], 1000);
const shareText = v => `${(100 * v).toFixed(1)} %`;
const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

// ---- what hovering and focus tell ----

const tip = element("div", {id: "tip", role: "status", hidden: ""});

function showTip(lines, x, y) {
    tip.replaceChildren(...lines.filter(Boolean).map(line => element("div", {}, line)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(8, y - box.height - 10) : y + 18}px`;
}

function withTip(e, lines) {
    e.addEventListener("mousemove", event => showTip(lines(), event.clientX, event.clientY));
    e.addEventListener("mouseleave", () => tip.hidden = true);
    e.addEventListener("focus", () => {
        const box = e.getBoundingClientRect();
        if (e.matches(":focus-visible"))
            showTip(lines(), box.left, Math.min(box.bottom, innerHeight - 40));
    });
    e.addEventListener("blur", () => tip.hidden = true);
    return e;
}

addEventListener("keydown", event => {
    if (event.key === "Escape")
        tip.hidden = true;
});
addEventListener("scroll", () => tip.hidden = true, true);

// ---- the head ----

function drawHead(into) {
    into.append(element("header", {}, element("h1", {}, data.title),
                        ...data.about.map(line => element("p", {class: "code"}, line))));
    into.append(element("div", {class: "tiles"}, ...data.tiles.map(([name, value, note]) => element(
        "div", {class: "tile"}, element("span", {class: "small soft"}, name), element("b", {}, value),
        note ? element("span", {class: "small soft"}, note) : null))));
}

function section(into, id, title, ...inside) {
    const s = element("section", {id, "aria-labelledby": `${id}-title`},
                      element("h2", {id: `${id}-title`}, title), ...inside);
    into.append(s);
    return s;
}

// ---- time by kernel ----

const boundOf = k => k.compute === null || k.memory === null ? null : Math.max(k.compute, k.memory);
const boundBy = k => k.compute >= k.memory ? "arithmetic" : "memory";

function kernelLines(k) {
    const bound = boundOf(k);
    return [k.name, `${timeText(k.us)} of ${timeText(data.total)}, ${plural(k.calls, "call")}`,
            bound ? `bound by ${boundBy(k)}: ${timeText(bound)}, ${shareText(bound / k.us)} of it reached` : null,
            k.flops ? `${rateText(k.flops / k.us * 1e6).replace("/s", "FLOP/s")}` : null,
            k.bytes ? `${rateText(k.bytes / k.us * 1e6).replace("/s", "B/s")}, ${bytesText(k.bytes)}` : null];
}

// Which kernel is drawn open, below its row.
function openKernel(row, k) {
    const was = row.nextSibling;
    if (was && was.classList.contains("more"))
        return was.remove();
    const nodes = k.nodes.map(i => element("button", {class: "link code", click: () => graph.choose(i, true)},
                                           graph.nodes[i].name || graph.nodes[i].op));
    row.after(element("div", {class: "more"}, ...kernelLines(k).slice(1).filter(Boolean).map(line => element("div", {}, line)),
                      nodes.length ? element("div", {}, "from ", ...nodes.flatMap((n, i) => i ? [", ", n] : [n])) : null));
}

function drawKernels(into) {
    const known = data.kernels.some(k => boundOf(k) !== null);
    const most = Math.max(...data.kernels.map(k => Math.max(k.us, boundOf(k) || 0)), 1e-9);
    const head = (text, number) => element("div", {class: number ? "head number" : "head"}, text);
    const rows = data.kernels.map(k => {
        const bound = boundOf(k);
        const bar = element("i", {}), tick = bound ? element("i", {class: "tick"}) : null;
        bar.style.width = `${100 * k.us / most}%`;
        if (tick)
            tick.style.left = `calc(${100 * bound / most}% - 1.5px)`;
        const row = element("div", {class: "row"});
        row.append(withTip(element("button", {class: "code", click: () => openKernel(row, k)}, k.name), () => kernelLines(k)),
                   withTip(element("div", {class: "bar"}, element("span", {}, bar, tick)), () => kernelLines(k)),
                   element("div", {class: "number"}, timeText(k.us)),
                   element("div", {class: "number"}, shareText(k.us / data.total)),
                   element("div", {class: "number"}, bound && k.us ? shareText(bound / k.us) : "–"));
        return row;
    });
    section(into, "kernels", "Time by kernel",
            element("div", {class: "legend"},
                    element("span", {}, element("i", {class: "measured"}), "measured, the median of all calls of a run"),
                    known ? element("span", {}, element("i", {class: "bound tick"}), "at least, by arithmetic or memory (the roofline)") : null),
            element("div", {class: "kernels"},
                    element("div", {class: "row"}, head("kernel"), head(""), head("time", true), head("share", true),
                            head("of its bound", true)), ...rows));
}

// ---- memory ----

// A colour for each kernel, as far from the others as the golden angle puts it.
function hues(slots) {
    const names = [...new Set(slots.map(s => s.name))];
    return slot => 210 + 137.5 * names.indexOf(slot.name);
}

function drawMemory(into) {
    const m = data.memory, hue = hues(m.slots), steps = Math.max(...m.slots.map(s => s.last)) + 1;
    const live = new Float64Array(steps);
    for (const s of m.slots)
        for (let i = s.first; i <= s.last; i++)
            live[i] += s.bytes;
    const at = live.indexOf(Math.max(...live));
    const place = element("div", {});
    section(into, "memory", "Memory over time",
            element("p", {class: "small soft"}, `The arena: ${bytesText(m.arena)}` +
                (m.thread ? ` and ${bytesText(m.thread)} for each thread` : "") +
                `. A rectangle is a value, from the step that stores it to the last that reads it.`), place);

    function draw() {
        const width = Math.max(place.clientWidth, 300), height = 320, left = 74, bottom = 34, top = 22;
        const x = i => left + (width - left - 8) * i / steps, y = b => height - bottom - (height - bottom - top) * b / m.arena;
        const svg = element("svg:svg", {viewBox: `0 0 ${width} ${height}`, height, role: "group",
                                        "aria-label": "values in the arena, by step and offset"});
        for (let k = 0; k <= 4; k++) {
            const b = m.arena * k / 4;
            svg.append(element("svg:line", {class: "axis", x1: left, x2: width - 8, y1: y(b), y2: y(b)}),
                       element("svg:text", {x: left - 8, y: y(b) + 4, "text-anchor": "end"}, bytesText(b)));
        }
        const ticks = Math.min(steps, Math.floor((width - left) / 90));
        for (let k = 0; k < ticks; k++) {
            const i = Math.floor(steps * k / ticks);
            svg.append(element("svg:text", {x: x(i) + 2, y: height - 14}, k ? `${i}` : `step ${i}`));
        }
        for (const s of m.slots) {
            const r = element("svg:rect", {class: "slot", x: x(s.first), width: Math.max(1, x(s.last + 1) - x(s.first)),
                                           y: y(s.offset + s.bytes), height: Math.max(1, y(s.offset) - y(s.offset + s.bytes)),
                                           tabindex: 0, "aria-label": `${s.name}, ${bytesText(s.bytes)}`});
            r.style.fill = `hsl(${hue(s)}, 45%, 62%)`;
            svg.append(withTip(r, () => [s.name, `${bytesText(s.bytes)} at ${s.offset.toLocaleString("en")}`,
                                         s.first === s.last ? `step ${s.first}` : `steps ${s.first} to ${s.last}`]));
        }
        const middle = (x(at) + x(at + 1)) / 2, right = middle > width * 0.6;
        svg.append(element("svg:line", {class: "peak", x1: middle, x2: middle, y1: top - 6, y2: height - bottom}),
                   element("svg:text", {class: "peak-text", x: middle + (right ? -6 : 6), y: top - 8,
                                        "text-anchor": right ? "end" : "start"},
                           `peak at step ${at}: ${bytesText(live[at])} alive`));
        place.replaceChildren(svg);
    }
    draw();
    new ResizeObserver(() => {
        if (place.firstChild && Math.abs(place.clientWidth - place.firstChild.viewBox.baseVal.width) > 1)
            draw();
    }).observe(place);
}

// ---- the graph ----

const graph = {nodes: data.nodes || [], chosen: -1};

function nodeText(v) {
    const cut = (s, n) => [...s].length > n ? `${[...s].slice(0, n - 1).join("")}…` : s;
    v.title = cut(v.op, 30);
    v.under = cut(v.name || "", 34);
    v.width = Math.max(70, 24 + 7.4 * Math.max([...v.title].length, [...v.under].length * 0.95));
}

function drawNode(v, most) {
    const hot = v.us ? v.us / most : 0;
    const box = element("svg:rect", {x: v.x - v.width / 2, y: v.y - 21, width: v.width, height: 42, rx: v.kind ? 21 : 6});
    if (hot)
        box.style.fill = `hsl(var(--hot), calc(var(--hot-light) - var(--hot-range) * ${Math.sqrt(hot).toFixed(3)}))`;
    v.shape = element("svg:g", {class: v.kind ? "node end" : "node", tabindex: -1, role: "button", "data-node": v.index,
                                "aria-label": `${v.op} ${v.name || ""}`}, box,
                      element("svg:text", {class: "op", x: v.x, y: v.under ? v.y - 3 : v.y + 4, "text-anchor": "middle"}, v.title),
                      v.under ? element("svg:text", {class: "name", x: v.x, y: v.y + 13, "text-anchor": "middle"}, v.under) : null);
    return withTip(v.shape, () => [v.op, v.name, v.type, v.us ? `${timeText(v.us)}${v.kernels.length ? " with what it is fused with" : ""}` : null]);
}

// From node to node through the places where the edge passes layers.
function edgePath(chain) {
    const from = chain[0], to = chain[chain.length - 1];
    let d = `M${from.x.toFixed(1)},${(from.y + 21).toFixed(1)}`, y = from.y + 21, x = from.x;
    for (const p of chain.slice(1)) {
        const end = p.y - 21, middle = (y + end) / 2;
        d += `C${x.toFixed(1)},${middle.toFixed(1)} ${p.x.toFixed(1)},${middle.toFixed(1)} ${p.x.toFixed(1)},${end.toFixed(1)}`;
        if (p !== to)
            d += `V${(p.y + 21).toFixed(1)}`;
        x = p.x;
        y = p.y + 21;
    }
    return d;
}

const nodeLink = i => element("button", {class: "link code", click: () => graph.choose(i, true)},
                              `${graph.nodes[i].name || "unnamed"} (${graph.nodes[i].op})`);

function list(title, items) {
    return items.length ? [element("h4", {}, title), element("ul", {}, ...items.map(item => element("li", {}, item)))] : [];
}

function describe(v) {
    const constants = v.constants.map(c => element("span", {class: "code"}, `${c.name}: ${c.type}, ${bytesText(c.bytes)}`));
    return [element("h3", {}, v.op), element("div", {class: "code"}, v.name || ""),
            ...list("type", v.type ? [element("span", {class: "code"}, v.type)] : []),
            ...list("attributes", v.attributes ? [element("span", {class: "code"}, v.attributes)] : []),
            ...list("reads", v.from.map(nodeLink)), ...list("constants", constants), ...list("read by", v.to.map(nodeLink)),
            ...list("runs in", v.kernels.map(k => `${data.kernels[k].name}: ${timeText(data.kernels[k].us)}`))];
}

function drawGraph(into, title, note) {
    graph.nodes.forEach((v, i) => {
        v.index = i;
        v.to = [];
        v.kernels = v.kernels || [];
        nodeText(v);
    });
    for (const v of graph.nodes)
        for (const from of new Set(v.from))
            graph.nodes[from].to.push(v.index);
    const all = layout(graph.nodes), most = Math.max(...graph.nodes.map(v => v.us || 0), 1e-9);
    const svg = element("svg:svg", {viewBox: `0 0 ${all.width} ${all.height}`, role: "group", "aria-label": "the graph of the model"});
    for (const chain of all.edges) {
        const path = element("svg:path", {class: "edge", d: edgePath(chain)});
        path.ends = [chain[0].index, chain[chain.length - 1].index];
        svg.append(path);
    }
    for (const v of graph.nodes)
        svg.append(drawNode(v, most));
    const canvas = element("div", {class: "canvas"}, svg), detail = element("div", {class: "detail", "aria-live": "polite"});
    const search = element("input", {type: "search", placeholder: "Find an operator, node or tensor", "aria-label": "Find"});
    const count = element("span", {class: "small soft"}, plural(graph.nodes.length, "node"));
    let scale = 1, found = [];

    function zoom(to) {
        const old = scale, x = canvas.scrollLeft + canvas.clientWidth / 2, y = canvas.scrollTop + canvas.clientHeight / 2;
        scale = Math.max(0.02, Math.min(2.5, to));
        svg.setAttribute("width", all.width * scale);
        svg.setAttribute("height", all.height * scale);
        canvas.scrollLeft = x * scale / old - canvas.clientWidth / 2;
        canvas.scrollTop = y * scale / old - canvas.clientHeight / 2;
    }

    graph.choose = (i, scroll) => {
        const v = graph.nodes[i];
        for (const e of svg.querySelectorAll(".chosen"))
            e.classList.remove("chosen");
        if (graph.chosen >= 0)
            graph.nodes[graph.chosen].shape.setAttribute("tabindex", -1);
        graph.chosen = i;
        v.shape.setAttribute("tabindex", 0);
        v.shape.classList.add("chosen");
        for (const e of svg.querySelectorAll(".edge"))
            e.classList.toggle("chosen", e.ends.includes(i));
        detail.replaceChildren(...describe(v));
        if (scroll) {
            canvas.scrollTo(v.x * scale + Math.max(0, (canvas.clientWidth - all.width * scale) / 2) - canvas.clientWidth / 2,
                            v.y * scale - canvas.clientHeight / 2);
            if (canvas.getBoundingClientRect().top < 0 || canvas.getBoundingClientRect().bottom > innerHeight)
                canvas.scrollIntoView({block: "center"});
        }
    };

    function find() {
        const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
        found = words.length ? graph.nodes.filter(v => words.every(w => v.text.includes(w))).map(v => v.index) : [];
        svg.classList.toggle("searching", words.length > 0);
        for (const v of graph.nodes)
            v.shape.classList.remove("found");
        for (const i of found)
            graph.nodes[i].shape.classList.add("found");
        count.textContent = words.length ? `${found.length} of ${plural(graph.nodes.length, "node")}` : plural(graph.nodes.length, "node");
        if (found.length)
            graph.choose(found[0], true);
    }
    for (const v of graph.nodes)
        v.text = [v.op, v.name, v.type, ...v.constants.map(c => c.name)].join(" ").toLowerCase();
    search.addEventListener("input", find);
    search.addEventListener("keydown", event => {
        if (event.key === "Enter" && found.length)
            graph.choose(found[(found.indexOf(graph.chosen) + (event.shiftKey ? found.length - 1 : 1)) % found.length], true);
    });
    svg.addEventListener("click", event => {
        const shape = event.target.closest(".node");
        if (shape)
            graph.choose(Number(shape.dataset.node), false);
    });
    // Arrows walk along edges, and to the side within a layer.
    svg.addEventListener("keydown", event => {
        const v = graph.nodes[graph.chosen];
        const row = v ? graph.nodes.filter(w => w.layer === v.layer).sort((a, b) => a.x - b.x) : [];
        const to = {ArrowUp: v && v.from[0], ArrowDown: v && v.to[0],
                    ArrowLeft: v && (row[row.indexOf(v) - 1] || {}).index, ArrowRight: v && (row[row.indexOf(v) + 1] || {}).index}[event.key];
        if (to === undefined)
            return;
        event.preventDefault();
        graph.choose(to, true);
        graph.nodes[to].shape.focus({preventScroll: true});
    });
    canvas.addEventListener("wheel", event => {
        if (!event.ctrlKey)
            return;
        event.preventDefault();
        zoom(scale * (event.deltaY < 0 ? 1.15 : 1 / 1.15));
    }, {passive: false});
    const button = (text, label, act) => element("button", {click: act, "aria-label": label, title: label}, text);
    section(into, "graph", title, element("p", {class: "small soft"}, note),
            element("div", {class: "tools"}, search, count, button("+", "zoom in", () => zoom(scale * 1.25)),
                    button("−", "zoom out", () => zoom(scale / 1.25)),
                    button("Fit", "fit the width", () => zoom((canvas.clientWidth - 4) / all.width)),
                    button("Whole", "the whole graph", () => zoom(Math.min((canvas.clientWidth - 4) / all.width, (canvas.clientHeight - 4) / all.height)))),
            element("div", {class: "graph"}, canvas, detail));
    zoom(Math.min(1, Math.max(0.8, (canvas.clientWidth - 4) / all.width)));
    canvas.scrollTo(Math.max(0, graph.nodes[0].x * scale - canvas.clientWidth / 2), 0);
    graph.choose(graph.nodes.reduce((best, v) => (v.us || 0) > (graph.nodes[best].us || 0) ? v.index : best, 0), false);
}

// ---- the page ----

const main = document.querySelector("main");
drawHead(main);
if (data.kernels)
    drawKernels(main);
if (data.memory && data.memory.slots.length && data.memory.arena)
    drawMemory(main);
if (graph.nodes.length)
    drawGraph(main, data.kernels ? "The model, its hot kernels coloured" : "The model",
              data.kernels ? "Colour is the time of the kernel that a node became part of. Arrow keys walk along edges."
                           : "Click a node, or find one by name. Arrow keys walk along edges.");
document.body.append(tip, element("footer", {class: "small soft"}, element("p", {}, data.version)));
