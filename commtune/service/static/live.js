"use strict";
// Puts what the server says of a campaign into its page. Text only: nothing is read as markup.
(() => {
  const section = document.querySelector("[data-events]");
  if (!section || !window.EventSource) return;
  const connection = section.querySelector("[data-connection]");
  const phases = section.querySelector("[data-phases]");
  const queue = section.querySelector("[data-queue]");
  const runs = document.querySelector("[data-runs]");
  const profiles = section.querySelector('[data-live="profiles"]').textContent;

  let reload = null;

  const cell = (row, tag, text, kind) => {
    const made = document.createElement(tag);
    if (tag === "th") made.scope = "row";
    if (kind) made.className = kind;
    made.textContent = text;
    row.append(made);
    return made;
  };

  const phaseRow = (one) => {
    const row = document.createElement("tr");
    cell(row, "th", one.phase);
    cell(row, "td", one.runs, "n");
    cell(row, "td", one.measured);
    const last = cell(row, "td", one.share === null ? "-" : "");
    if (one.share !== null) {
      const bar = document.createElement("progress");
      bar.max = 1;
      bar.value = one.share;
      bar.setAttribute("aria-label", `${one.phase}: share of its budget`);
      last.append(bar);
    }
    return row;
  };

  const jobRow = (one) => {
    const row = document.createElement("tr");
    cell(row, "th", one.job, "n");
    for (const told of [one.for, one.state, one.since, one.reason, one.nodes]) cell(row, "td", told);
    return row;
  };

  const runRow = (one) => {
    const row = document.createElement("tr");
    const link = document.createElement("a");
    link.href = runs.dataset.runs + encodeURIComponent(one.run);
    link.textContent = one.run;
    cell(row, "th", "").append(link);
    cell(row, "td", one.started);
    cell(row, "td", one.phase);
    cell(row, "td", one.block, "n");
    cell(row, "td", one.outcome);
    cell(row, "td", one.took, "n");
    cell(row, "td", one.settings);
    return row;
  };

  const show = (now) => {
    for (const place of section.querySelectorAll("[data-live]")) {
      const text = now.words[place.dataset.live];
      if (place.textContent !== text) place.textContent = text;
    }
    phases.replaceChildren(...now.phases.map(phaseRow));
    queue.hidden = now.jobs.length === 0;
    queue.querySelector("[data-jobs]").replaceChildren(...now.jobs.map(jobRow));
    // Rows that the reader stands on stay.
    if (!runs.contains(document.activeElement)) runs.replaceChildren(...now.runs.map(runRow));
  };

  const source = new EventSource(section.dataset.events);
  source.onmessage = (event) => {
    const now = JSON.parse(event.data);
    connection.textContent = now.fault ? ` (${now.fault})` : "";
    if (now.fault) return;
    show(now);
    // Profiles have tables of their own, which the server makes. Not at once: it keeps pages for
    // a moment, and would give the same one again.
    if (now.words.profiles !== profiles) reload ??= setTimeout(() => location.reload(), 10000);
  };
  source.onerror = () => {
    connection.textContent = " (the service does not answer; trying again)";
  };
})();
