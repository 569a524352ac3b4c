// Keeps a page up to date. The server sends the content of the page as HTML; what differs is changed in place, so that focus, scrolling and
// opened details stay.
"use strict";
(() => {
  const main = document.getElementById("main");
  const live = document.getElementById("live");
  let source = null;
  let updated = new Date();
  let lost = null;

  const clock = (date) => date.toISOString().slice(11, 19) + "Z";
  const say = (style, text) => {
    if (live.textContent !== text) live.textContent = text;
    live.className = style;
  };
  const settle = () => (lost ? say("stale", "Stale since " + clock(lost) + ": the hub cannot be read") : say("live", "Live"));

  // same reports whether an element may become another one by changing attributes and children.
  const same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName;

  const attributes = (a, b) => {
    for (const { name } of [...a.attributes]) {
      if (!b.hasAttribute(name) && !(name === "open" && a.nodeName === "DETAILS") && name !== "hidden") a.removeAttribute(name);
    }
    for (const { name, value } of b.attributes) {
      if (name === "hidden" || (name === "open" && a.nodeName === "DETAILS")) continue;
      if (a.getAttribute(name) !== value) a.setAttribute(name, value);
    }
  };

  const become = (a, b) => {
    if (a.nodeType !== Node.ELEMENT_NODE) {
      if (a.nodeValue !== b.nodeValue) a.nodeValue = b.nodeValue;
      return;
    }
    if (a.isEqualNode(b)) return;
    if (["INPUT", "SELECT", "TEXTAREA"].includes(a.nodeName) && a.type !== "hidden") { // what the user types or selects stays
      if (a.nodeName === "SELECT" && a !== document.activeElement) options(a, b);
      return;
    }
    attributes(a, b);
    children(a, b);
  };

  // options updates what can be selected.
  const options = (a, b) => {
    const selected = a.value;
    children(a, b);
    a.value = selected;
    if (a.selectedIndex < 0) a.selectedIndex = 0;
  };

  const children = (a, b) => {
    const next = [...b.childNodes];
    next.forEach((child, i) => {
      const old = a.childNodes[i];
      if (!old) a.append(child);
      else if (same(old, child)) become(old, child);
      else old.replaceWith(child);
    });
    while (a.childNodes.length > next.length) a.lastChild.remove();
  };

  const show = (html) => {
    const parsed = new DOMParser().parseFromString("<main>" + html + "</main>", "text/html");
    const next = parsed.querySelector("main");
    children(main, next);
    prepare();
    updated = new Date();
  };

  // prepare shows what works with scripts only.
  const prepare = () => main.querySelectorAll("[data-copy][hidden]").forEach((button) => button.removeAttribute("hidden"));

  const open = () => {
    if (source || !main || !main.hasAttribute("data-live") || !window.EventSource) return;
    source = new EventSource(location.pathname + location.search);
    source.addEventListener("snapshot", (event) => show(event.data));
    source.addEventListener("end", settle);
    source.addEventListener("change", (event) => { show(event.data); settle(); });
    source.addEventListener("hub", (event) => {
      const time = new Date(JSON.parse(event.data));
      lost = time.getUTCFullYear() > 1 ? time : null;
      settle();
    });
    source.addEventListener("over", () => { close(); location.reload(); });
    source.onerror = () => {
      say("stale", "Reconnecting: stale since " + clock(updated));
      if (source && source.readyState === EventSource.CLOSED) { // the session has ended, a limit is reached, or a proxy answered
        close();
        setTimeout(check, 2000);
      }
    };
  };
  const close = () => { if (source) source.close(); source = null; };

  // check finds out why the stream was closed. It is opened again later if a limit was reached; otherwise the page is loaded again.
  const check = () => {
    const end = new AbortController();
    fetch(location.href, { cache: "no-store", headers: { Accept: "text/event-stream" }, signal: end.signal }).then(async (response) => {
      if (response.status !== 429) {
        end.abort();
        location.reload();
        return;
      }
      say("stale", "Not live: " + (await response.text()).trim());
      setTimeout(() => { if (!document.hidden) open(); }, Number(response.headers.get("Retry-After") || 15) * 1000 * (1 + Math.random()));
    }).catch(() => setTimeout(check, 2000));
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button || !navigator.clipboard) return;
    navigator.clipboard.writeText(button.dataset.copy).then(() => {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });
  // The key / focuses the search field, unless the user types somewhere.
  document.addEventListener("keydown", (event) => {
    const field = document.getElementById("search");
    const typing = event.target.closest && event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || typing || !field) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
  // A browser opens six connections to a server: pages that are not visible need none.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);

  if (main) { prepare(); if (!document.hidden) open(); }
})();
