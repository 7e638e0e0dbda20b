// Checks a policy while it is written: the page's own check, asked again, and its
// answer put beside the text. A form in which nothing was changed follows the text.
// Without this script the button does the same.
"use strict";

const editor = document.getElementById("editor");
const shown = document.getElementById("check");
let asked = 0;
let timer;

async function check() {
  const now = ++asked;
  const form = new URLSearchParams(new FormData(editor));
  for (const field of [...fields(editor), editor.elements.was]) form.delete(field.name); // the text alone
  form.set("do", "check");
  try {
    const response = await fetch(editor.action, { method: "POST", body: form, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (now !== asked) return;
    const found = page.getElementById("check");
    if (!found) return unchecked();
    shown.replaceChildren(...found.childNodes);
    follow(page.getElementById("editor"));
  } catch {
    if (now === asked) unchecked();
  }
}

// What stood beside an earlier text must not stand beside this one.
function unchecked() {
  const note = document.createElement("p");
  note.className = "notice care";
  note.textContent = "This text could not be checked. It is still here: copy it before you leave, and press Check, or sign in again in another tab.";
  shown.replaceChildren(note);
}

function fields(of) {
  return [...of.elements].filter((field) => field.name.startsWith("f_"));
}

function untouched(field) {
  if (field.dataset.kept !== undefined) return false;
  return field.type === "checkbox" ? field.checked === field.defaultChecked : field.value === field.defaultValue;
}

// A form of a text that is no JSON says nothing, and is made from no text.
function follow(made) {
  if (!made.elements.was.value || !fields(editor).every(untouched)) return;
  for (const field of fields(editor)) {
    const from = made.elements[field.name];
    if (field.type === "checkbox") {
      field.checked = field.defaultChecked = from.checked;
    } else {
      field.value = field.defaultValue = from.value;
    }
  }
  editor.elements.was.value = made.elements.was.value;
}

document.getElementById("policy").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(check, 400);
});
