// Sorting is all it adds: greatest first, then least first, then the order of the report. Missing values stay last.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const value = (row, i) => {
    const cell = row.cells[i];
    return i === 0 ? cell.textContent : cell.dataset.v === undefined ? null : Number(cell.dataset.v);
  };
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = i === 0 ? "ascending" : "descending", second = i === 0 ? "descending" : "ascending";
      const now = head.getAttribute("aria-sort");
      const next = now === first ? second : now === second ? null : first;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      if (next) head.setAttribute("aria-sort", next);
      const sorted = next === null ? rows : [...rows].sort((a, b) => {
        const [x, y] = [value(a, i), value(b, i)];
        if (x === null || y === null) return (x === null) - (y === null);
        const order = i === 0 ? x.localeCompare(y) : x - y;
        return next === "ascending" ? order : -order;
      });
      body.append(...sorted);
    });
  });
}
