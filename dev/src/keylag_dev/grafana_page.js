// Reads what a dashboard shows. `texts` of a canvas are those that it draws: the ticks.
(() => {
  const PANEL = "section[data-testid^='data-testid Panel header ']";
  const CONTENT = "[data-testid='data-testid panel content']";
  const MARGIN = 64;
  const drawing = CanvasRenderingContext2D.prototype;
  const { fillText, clearRect } = drawing;

  drawing.clearRect = function (...area) {
    this.canvas.texts = [];
    return clearRect.apply(this, area);
  };
  drawing.fillText = function (text, ...where) {
    (this.canvas.texts ??= []).push(String(text));
    return fillText.call(this, text, ...where);
  };

  const all = (selector, below) => [...below.querySelectorAll(selector)];
  const text = (element) => element.innerText.trim();
  const isClipped = (element) => element.scrollWidth > element.clientWidth + 1;

  const box = (element) => {
    const { left, top, right, bottom } = element.getBoundingClientRect();
    return { left, top, right, bottom };
  };

  // The part of a cell's text that fits into the cell.
  const visible = (cell) => {
    const node = [...cell.childNodes].find((one) => one.nodeType === Node.TEXT_NODE);
    if (!node || !isClipped(cell)) return text(cell);
    const range = document.createRange();
    const { right } = cell.getBoundingClientRect();
    let length = 0;
    do range.setStart(node, 0), range.setEnd(node, ++length);
    while (length < node.length && range.getBoundingClientRect().right <= right);
    return node.data.slice(0, length - 1);
  };

  const legends = (panel) =>
    all("[data-testid='series-icon']", panel).map((icon) => {
      const row = icon.closest("tr");
      return {
        name: text((row ?? icon.parentElement).querySelector("button")),
        color: icon.style.background,
        values: row ? all("td", row).slice(1).map(text) : [],
      };
    });

  const columns = (panel) => {
    const cells = all("[role=gridcell]", panel);
    return all("[role=columnheader]", panel).map((header) => {
      const index = header.getAttribute("aria-colindex");
      const own = cells.filter((one) => one.getAttribute("aria-colindex") === index);
      return {
        heading: text(header),
        clipped: [header, ...header.children].some(isClipped),
        cells: own.map((cell) => ({ text: text(cell), visible: visible(cell) })),
      };
    });
  };

  const hiddenColumns = (panel) =>
    all("[role=grid]", panel).some(
      (grid) =>
        isClipped(grid) ||
        Number(grid.ariaColCount) > all("[role=columnheader]", grid).length,
    );

  window.readPanels = () =>
    all(PANEL, document).map((panel) => ({
      title: text(panel.querySelector("h2")),
      title_clipped: isClipped(panel.querySelector("h2")),
      box: box(panel),
      text: text(panel.querySelector(CONTENT)),
      failed: Boolean(panel.querySelector("[data-testid='data-testid Panel status error']")),
      ticks: all("canvas", panel).flatMap((canvas) => canvas.texts ?? []),
      legends: legends(panel),
      columns: columns(panel),
      hidden_columns: hiddenColumns(panel),
    }));

  window.endOfPanels = () =>
    Math.max(...all(PANEL, document).map((panel) => box(panel).bottom));

  // Grafana lays panels out some time after the window has changed its width.
  const fillsWindow = () => {
    const right = Math.max(...all(PANEL, document).map((panel) => box(panel).right));
    return right <= window.innerWidth && right > window.innerWidth - MARGIN;
  };

  window.allPanelsShown = () =>
    fillsWindow() &&
    !document.querySelector("[aria-label='Panel loading bar']") &&
    !all("[data-testid='data-testid RefreshPicker run button']", document).some((one) =>
      text(one).includes("Cancel"),
    ) &&
    all(PANEL, document).every((panel) => {
      const content = panel.querySelector(CONTENT);
      return content?.querySelector("canvas, [role=grid]") || (content && text(content));
    });
})();
