"use strict";
// Everything can be read without this file. It adds suggestions while typing, forms that send themselves,
// a run page that keeps up with learning, and keys.

const SUGGESTIONS = 8;
const WAIT = 120;

function address(kind, label) {
  return `/${kind}?${new URLSearchParams({ label })}`;
}

class Suggestions {
  constructor(input) {
    this.input = input;
    this.matches = [];
    this.chosen = -1;
    const box = document.createElement("div");
    box.className = "suggesting";
    input.replaceWith(box);
    this.list = document.createElement("ul");
    this.list.className = "suggestions";
    this.list.id = `${input.id}-suggestions`;
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Suggestions");
    this.list.hidden = true;
    box.append(input, this.list);
    const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": this.list.id };
    for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
    input.addEventListener("input", () => this.wait());
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("blur", () => this.close());
  }

  wait() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), WAIT);
  }

  drop() {
    clearTimeout(this.timer);
    this.abort?.abort();
  }

  async ask() {
    const q = this.input.value.trim();
    if (!q || q === "?" || q.length > 200) return this.close();
    const parameters = new URLSearchParams({ q, top: SUGGESTIONS });
    if (this.input.dataset.suggest !== "any") parameters.set("kind", this.input.dataset.suggest);
    this.abort?.abort();
    this.abort = new AbortController();
    try {
      const response = await fetch(`/api/search?${parameters}`, { signal: this.abort.signal });
      if (response.ok) this.show((await response.json()).found);
    } catch (error) {
      if (error.name !== "AbortError") this.close();
    }
  }

  show(matches) {
    if (document.activeElement !== this.input) return;
    this.matches = matches;
    this.chosen = -1;
    this.list.replaceChildren(...matches.map((match, index) => this.option(match, index)));
    this.list.hidden = !matches.length;
    this.input.setAttribute("aria-expanded", String(matches.length > 0));
    this.input.removeAttribute("aria-activedescendant");
  }

  option(match, index) {
    const item = document.createElement("li");
    item.id = `${this.list.id}-${index}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    const name = document.createElement("bdi");
    name.textContent = match.name.slice(0, 120);
    item.append(name);
    if (this.input.dataset.suggest === "any") {
      const kind = document.createElement("span");
      kind.className = "sub";
      kind.textContent = match.kind;
      item.append(kind);
    }
    item.addEventListener("mousedown", (event) => {
      event.preventDefault();
      this.take(match);
    });
    return item;
  }

  key(event) {
    if (this.list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.drop(); // a late answer would replace what is being chosen from
      const n = this.matches.length;
      this.choose((this.chosen + (event.key === "ArrowDown" ? 1 : n + (this.chosen < 0 ? 0 : -1))) % n);
    } else if (event.key === "Enter" && this.chosen >= 0) {
      event.preventDefault();
      this.take(this.matches[this.chosen]);
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
  }

  choose(index) {
    this.chosen = index;
    [...this.list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
    this.input.setAttribute("aria-activedescendant", this.list.children[index].id);
    this.list.children[index].scrollIntoView({ block: "nearest" });
  }

  take(match) {
    this.close();
    if ("goto" in this.input.dataset) location.assign(address(match.kind, match.label));
    else this.input.value = match.label;
  }

  close() {
    clearTimeout(this.timer);
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}

function sendsItself(field) {
  field.addEventListener("change", () => {
    const form = field.form;
    if (form.reportValidity()) form.requestSubmit();
  });
}

function keepUp(part) {
  const seconds = Number(part.dataset.live);
  const timer = setInterval(async () => {
    if (document.hidden) return;
    try {
      const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      const fresh = page.querySelector("[data-live]");
      if (fresh) part.replaceChildren(...fresh.childNodes);
      else location.reload();
      if (!fresh || !Number(fresh.dataset.live)) clearInterval(timer);
    } catch {
      clearInterval(timer);
    }
  }, seconds * 1000);
}

function isTyping(target) {
  return target.closest("input, select, textarea, [contenteditable]") !== null;
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "/") {
    event.preventDefault();
    (document.getElementById("big-find") ?? document.getElementById("find")).focus();
    return;
  }
  const button = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (button) {
    event.preventDefault();
    if (button.matches("input, textarea")) button.focus();
    else button.click();
  }
}

document.querySelectorAll("[data-suggest]").forEach((input) => new Suggestions(input));
document.querySelectorAll("[data-submits]").forEach(sendsItself);
document.querySelectorAll("[data-live]").forEach((part) => Number(part.dataset.live) && keepUp(part));
document.addEventListener("keydown", keys);
