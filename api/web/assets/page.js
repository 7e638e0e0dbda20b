// What makes a page more comfortable, and nothing it needs: ids that are copied
// whole, times that stay true while the page is open, menus that close, forms that are
// sent once. It is loaded as a module, so that its names do not collide with those of a
// page's own script.

for (const code of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy " + (code.dataset.name || code.textContent));
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  code.after(button);
}

// The text of a page as Markdown, for a conversation with a model: the link beside
// the button leads to it without scripts.
for (const link of document.querySelectorAll("[data-copy-from]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy as Markdown";
  button.addEventListener("click", async () => {
    try {
      const answer = await fetch(link.dataset.copyFrom);
      if (!answer.ok) throw new Error(String(answer.status));
      await navigator.clipboard.writeText(await answer.text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => { button.textContent = "Copy as Markdown"; }, 2000);
  });
  link.before(button);
}

// A table of a document that is wider than its column scrolls, so the keyboard must reach
// it. Not every browser does this without a script.
const reachTables = () => {
  for (const table of document.querySelectorAll(".prose table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
    else table.removeAttribute("tabindex");
  }
};
reachTables();
addEventListener("resize", reachTables);

// A second press sends nothing while the first is under way: it would issue a second
// secret, which nobody sees. A form that downloads a file leaves its page open, so it can
// be sent again a moment later.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  setTimeout(() => { delete form.dataset.sent; }, 3000);
});

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always" });
function ago(time) {
  const shown = time.querySelector(".ago");
  if (!shown) return;
  const seconds = Math.round((new Date(time.dateTime) - Date.now()) / 1000);
  if (Math.abs(seconds) >= 8 * 86400) return;
  if (seconds <= 0 && seconds > -10) { shown.textContent = "just now"; return; }
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) || units[3];
  shown.textContent = relative.format(Math.trunc(seconds / size), unit);
}
setInterval(() => document.querySelectorAll("time").forEach(ago), 30000);

// Keys for members who review many decisions: they move in a list and lead through the form of a
// verdict. A key does nothing while the person types, and no key gives a verdict without a reason.
const rows = [...document.querySelectorAll("table.rows tbody tr")];
let row = -1;
function go(to) {
  if (!rows.length) {
    const next = document.querySelector('a[rel="next"]');
    if (to > 0 && next) next.click();
    if (to < 0) history.back();
    return;
  }
  row = Math.max(0, Math.min(rows.length - 1, row + to));
  const link = rows[row].querySelector('td[data-label="Action"] a');
  if (link) link.focus();
}
function verdict(value) {
  const form = document.getElementById("verdict");
  if (!form) {
    const reject = document.querySelector('#reject [name="reason"]');
    if (value === "rejected" && reject) reject.focus();
    return;
  }
  const button = form.querySelector('button[value="' + value + '"]');
  if (!button) return;
  if (form.elements.reason.value.trim()) button.focus();
  else form.querySelector('[name="ready"]').focus();
}
function help() {
  let dialog = document.querySelector("dialog.keys");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.className = "keys";
    const list = [["j", "next row or review"], ["k", "previous row or review"], ["x", "select the row"], ["a", "approve: goes to the reason, then to the button"],
      ["r", "reject: goes to the reason, then to the button"], ["/", "search"], ["?", "this list"]];
    dialog.append(...list.map(([key, what]) => {
      const line = document.createElement("p");
      const name = document.createElement("kbd");
      name.textContent = key;
      line.append(name, " " + what);
      return line;
    }));
    document.body.append(dialog);
  }
  dialog.open ? dialog.close() : dialog.showModal();
}
for (const button of document.querySelectorAll('#verdict [name="ready"]')) {
  button.addEventListener("click", (event) => {
    event.preventDefault();
    document.querySelector('#verdict [name="reason"]').value = button.value;
  });
}
const keys = {
  j: () => go(1), k: () => go(-1), a: () => verdict("approved"), r: () => verdict("rejected"), "?": help,
  x: () => { const box = rows[row] && rows[row].querySelector('input[type="checkbox"]'); if (box) box.click(); },
  "/": () => { const box = document.querySelector(".find input"); if (box) box.focus(); },
};
document.addEventListener("keydown", (event) => {
  const typed = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || typed.matches('textarea, select, input:not([type="radio"], [type="checkbox"])')) return;
  const press = keys[event.key];
  if (!press) return;
  event.preventDefault();
  press();
});

// Keep the number of pending reviews up to date while the page is open. The lists of the page do not
// change, so that nothing moves while a person reads; a link shows the new list.
if (document.body.dataset.live) {
  let stream;
  const listen = () => {
    stream?.close();
    if (document.hidden) return;
    stream = new EventSource(document.body.dataset.live);
    stream.addEventListener("message", (event) => {
      const { reviews, more } = JSON.parse(event.data);
      const text = reviews ? reviews + (more ? "+" : "") : "";
      let before;
      for (const place of document.querySelectorAll('.places a[href="/reviews"], .menu.narrow > summary, .menu.narrow a[href="/reviews"]')) {
        let number = place.querySelector(".number");
        before = number ? number.textContent : "";
        if (!number && text) {
          number = document.createElement("span");
          number.className = "number";
          place.append(" ", number);
        }
        if (number) { number.textContent = text; number.hidden = !text; }
      }
      if (before === text || !["/reviews", "/overview"].includes(location.pathname) || document.querySelector(".changed")) return;
      const note = document.createElement("p");
      note.className = "changed notice";
      note.setAttribute("role", "status");
      const link = document.createElement("a");
      link.href = "";
      link.textContent = "Show the new list";
      note.append("The pending reviews have changed. ", link);
      document.querySelector("main").append(note);
    });
  };
  listen();
  document.addEventListener("visibilitychange", listen);
}
