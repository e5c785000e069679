// nbgrader's page saves a field when one leaves it, and says nothing of a server that does not answer. Here what was
// typed is saved after a second of rest, a mark says so, and a page with something unsaved asks before it closes.
window.addEventListener("load", () => {
  const fields = ".score, .extra-credit, .comment"
  const typed = new Map(), sent = new Set(), timers = new Map()
  let failed = false, requests = 0, seen = 0
  const mark = document.createElement("div")
  mark.setAttribute("role", "status")
  mark.style.cssText = "position:fixed;right:1em;bottom:1em;padding:0.4em 0.8em;border:1px solid #888;color:#222;z-index:9"
  mark.hidden = true
  document.body.append(mark)
  const say = (words, color) => { mark.hidden = false; mark.textContent = words; mark.style.background = color }
  const later = (field, seconds) => {
    clearTimeout(timers.get(field))
    timers.set(field, setTimeout(() => save(field), 1000 * seconds))
  }
  const save = field => {
    if (field.validity.badInput) {  // half a number
      later(field, 1)
      return
    }
    field.value = typed.get(field)  // the page may have put an old text back
    field.dispatchEvent(new Event("change", {bubbles: true}))
  }
  document.addEventListener("input", event => {
    const field = event.target.closest(fields)
    if (!field) return
    typed.set(field, field.value)
    say("not saved yet", "#fdf6e3")
    later(field, 1)
  })
  document.addEventListener("change", event => {
    const field = event.target.closest(fields)
    if (!field || !typed.has(field)) return
    clearTimeout(timers.get(field))
    timers.delete(field)
    if (requests === seen) {  // nbgrader's script does not listen yet
      later(field, 1)
      return
    }
    seen = requests
    sent.add(field)
    failed = false
  })
  jQuery.ajaxSetup({timeout: 20000})
  jQuery(document).ajaxSend((event, request, settings) => { requests += settings.type === "PUT" })
  jQuery(document).ajaxError((event, request, settings) => { failed = failed || settings.type === "PUT" })
  jQuery(document).ajaxStop(() => {
    if (failed) {
      say("Not saved: the server does not answer. Leave this page open: it tries again every five seconds.", "#f2dede")
      sent.forEach(field => later(field, 5))
      return
    }
    typed.forEach((value, field) => {
      if (sent.has(field) && !timers.has(field)) typed.delete(field)
      else if (field.value !== value && !field.validity.badInput) field.value = value  // the answer has put the old back
    })
    sent.clear()
    if (!typed.size && !mark.hidden) say("saved", "#dff0d8")
  })
  window.addEventListener("beforeunload", event => { if (typed.size) event.preventDefault() })
})
