// The graph in layers: a node stands below all that it reads, an edge that passes layers bends only
// where it must.  The four steps of Sugiyama's method: layers by the longest path, places for edges
// that pass a layer, the order within layers by barycentres, positions by least squares.
"use strict";

const layout = (() => {
    const ROW = 78, GAP = 22, PASS = 10, MOST_PASSES = 30000;

    // Layers: inputs in the first, outputs in the last; nodes come after what they read.
    function layers(nodes) {
        let last = 0;
        for (const v of nodes) {
            v.layer = 0;
            for (const from of v.from)
                v.layer = Math.max(v.layer, nodes[from].layer + 1);
            last = Math.max(last, v.layer);
        }
        for (const v of nodes)
            if (v.kind === "output")
                v.layer = last;
        const rows = Array.from({length: last + 1}, () => []);
        for (const v of nodes)
            rows[v.layer].push(v);
        return rows;
    }

    // Each edge as a chain of places, one a layer.
    function chains(nodes, rows) {
        let passes = 0;
        const edges = [];
        for (const v of nodes)
            for (const from of new Set(v.from)) {
                const chain = [nodes[from]];
                passes += v.layer - nodes[from].layer - 1;
                for (let l = nodes[from].layer + 1; l < v.layer && passes < MOST_PASSES; l++) {
                    const place = {layer: l, width: PASS, pass: true};
                    rows[l].push(place);
                    chain.push(place);
                }
                chain.push(v);
                edges.push(chain);
            }
        for (const row of rows)
            for (const v of row)
                v.up = [], v.down = [];
        for (const chain of edges)
            for (let i = 1; i < chain.length; i++) {
                chain[i].up.push(chain[i - 1]);
                chain[i - 1].down.push(chain[i]);
            }
        return edges;
    }

    const mean = (list, of) => list.reduce((sum, v) => sum + of(v), 0) / list.length;

    function order(rows) {
        for (const row of rows)
            row.forEach((v, i) => v.at = i);
        for (let round = 0; round < 12; round++) {
            const side = round % 2 ? "down" : "up";
            for (const row of round % 2 ? [...rows].reverse() : rows) {
                for (const v of row)
                    v.key = v[side].length ? mean(v[side], w => w.at) : v.at;
                row.sort((v, w) => v.key - w.key).forEach((v, i) => v.at = i);
            }
        }
    }

    // The centres nearest to `wish` in the order of the row, apart as the widths demand: blocks of
    // neighbours that would overlap move to the mean of their wishes.
    function settle(row) {
        let shift = 0;
        const blocks = [];
        row.forEach((v, i) => {
            if (i)
                shift += (row[i - 1].width + v.width) / 2 + GAP;
            v.shift = shift;
            let b = {sum: (v.wish - shift) * v.weight, weight: v.weight, n: 1};
            while (blocks.length) {
                const a = blocks[blocks.length - 1];
                if (a.sum / a.weight <= b.sum / b.weight)
                    break;
                blocks.pop();
                b = {sum: a.sum + b.sum, weight: a.weight + b.weight, n: a.n + b.n};
            }
            blocks.push(b);
        });
        let i = 0;
        for (const b of blocks)
            for (let k = 0; k < b.n; k++, i++)
                row[i].x = b.sum / b.weight + row[i].shift;
    }

    function place(rows) {
        for (const row of rows)
            row.forEach((v, i) => {
                v.wish = i * 160;
                v.weight = v.pass ? 4 : 1;
                v.x = v.wish;
            });
        rows.forEach(settle);
        for (let round = 0; round < 24; round++) {
            const side = round % 2 ? "down" : "up";
            for (const row of round % 2 ? [...rows].reverse() : rows) {
                for (const v of row)
                    v.wish = v[side].length ? mean(v[side], w => w.x) : v.x;
                settle(row);
            }
        }
        let least = Infinity, most = -Infinity;
        for (const row of rows)
            for (const v of row) {
                least = Math.min(least, v.x - v.width / 2);
                most = Math.max(most, v.x + v.width / 2);
                v.y = v.layer * ROW + ROW / 2;
            }
        for (const row of rows)
            for (const v of row)
                v.x += GAP - least;
        return most - least + 2 * GAP;
    }

    return nodes => {
        const rows = layers(nodes), edges = chains(nodes, rows);
        order(rows);
        return {edges, width: place(rows), height: rows.length * ROW};
    };
})();
