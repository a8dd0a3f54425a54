// Runs in a page after its own script; what it finds goes into the title, which the test reads.
"use strict";

const faults = [];
const fault = text => faults.length < 8 && faults.push(text);
addEventListener("error", event => fault(`error: ${event.message}`));

function meet(a, b) {
    return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
}

// Elements that hold text themselves, and can be seen.
function texts() {
    return [...document.querySelectorAll("main *")].filter(e => !e.closest(".canvas, .detail, option") &&
        [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) && e.getClientRects().length);
}

function checkTexts() {
    const all = texts().map(e => [e, e.getBoundingClientRect()]);
    all.forEach(([a, box], i) => {
        if (box.right > innerWidth + 1)
            fault(`'${a.textContent}' leaves the page`);
        for (const [b, other] of all.slice(i + 1))
            if (meet(box, other) && !a.contains(b) && !b.contains(a))
                fault(`'${a.textContent}' lies on '${b.textContent}'`);
    });
    if (document.documentElement.scrollWidth > innerWidth)
        fault(`the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`);
}

function checkGraph() {
    const boxes = [...document.querySelectorAll(".node")].map(n => [n, n.querySelector("rect").getBoundingClientRect()]);
    boxes.sort((a, b) => a[1].top - b[1].top);
    boxes.forEach(([node, box], i) => {
        for (const text of node.querySelectorAll("text")) {
            const inside = text.getBoundingClientRect();
            if (inside.left < box.left - 1 || inside.right > box.right + 1)
                fault(`'${text.textContent}' leaves its node`);
        }
        for (let k = i + 1; k < boxes.length && boxes[k][1].top < box.bottom; k++)
            if (meet(box, boxes[k][1]))
                fault(`node '${node.textContent}' lies on '${boxes[k][0].textContent}'`);
    });
}

// The search finds each node by its name, the keys walk, a click tells the type.
function checkUse() {
    if (!document.querySelector(".node")) // of a product's profile there are times alone
        return;
    const search = document.querySelector("input[type=search]"), nodes = [...document.querySelectorAll(".node")];
    const name = document.querySelector(".node text.name"), last = nodes[nodes.length - 1];
    search.value = name ? name.textContent : "";
    search.dispatchEvent(new Event("input"));
    if (name && !name.parentNode.classList.contains("found"))
        fault(`'${search.value}' is not found`);
    search.value = "";
    search.dispatchEvent(new Event("input"));
    last.dispatchEvent(new MouseEvent("click", {bubbles: true}));
    if (!last.classList.contains("chosen") || !document.querySelector(".detail h3").textContent)
        fault("a click chooses nothing");
    last.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowUp", bubbles: true}));
    if (last.classList.contains("chosen"))
        fault("the arrow up goes nowhere");
    for (const button of document.querySelectorAll("button"))
        button.click();
}

function check() {
    try {
        checkTexts();
        checkGraph();
        checkUse();
        checkTexts();
    } catch (e) {
        fault(`${e}`);
    }
    if (document.querySelectorAll("script").length !== 3 || document.querySelector("main img, main iframe, main b *"))
        fault("a name became markup");
    document.title = faults.length ? `FAULTS ${faults.join("; ")}` : `no faults in ${document.querySelectorAll(".node").length} nodes`;
}

setTimeout(check, 300);
