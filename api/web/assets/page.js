// What makes a page more comfortable, and nothing it needs: ids that are copied
// whole, times that stay true while the page is open, menus that close, forms that are
// sent once.
"use strict";

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
  const seconds = Math.round((new Date(time.dateTime) - Date.now()) / 1000);
  if (Math.abs(seconds) >= 8 * 86400) return;
  if (seconds <= 0 && seconds > -10) { time.textContent = "just now"; return; }
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) || units[3];
  time.textContent = relative.format(Math.trunc(seconds / size), unit);
}
setInterval(() => document.querySelectorAll("time[title]").forEach(ago), 30000);
