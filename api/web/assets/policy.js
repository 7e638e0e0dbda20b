// Checks a policy while it is written: the page's own check, asked again, and its
// answer put beside the text. Without this script the button does the same.
"use strict";

const editor = document.getElementById("editor");
const shown = document.getElementById("check");
let asked = 0;
let timer;

async function check() {
  const now = ++asked;
  const form = new URLSearchParams();
  form.set("policy", document.getElementById("policy").value);
  form.set("do", "check");
  form.set("org", editor.elements.org.value);
  try {
    const response = await fetch(editor.action, { method: "POST", body: form, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const found = page.getElementById("check");
    if (found && now === asked) shown.replaceChildren(...found.childNodes);
  } catch {
    // The button still works.
  }
}

document.getElementById("policy").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(check, 400);
});
