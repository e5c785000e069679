// nbgrader's page saves a field when one leaves it, and says nothing of a server that does not answer. Here what was
// typed is saved after a second of rest, a mark says so, and a page with something unsaved asks before it closes.
// A browser's field for numbers may drop a comma, so that "0,5" is 5, and nbgrader cuts what is too much. Here a comma is
// a decimal sign, and what cannot be points is refused beside the field.
document.querySelectorAll(".score, .extra-credit").forEach(field => { field.type = "text"; field.inputMode = "decimal" })
window.addEventListener("load", () => {
  const points = ".score, .extra-credit", fields = `${points}, .comment`
  const typed = new Map(), sent = new Set(), timers = new Map()
  const unanswered = "the server does not answer. Leave this page open: it tries again every five seconds."
  let failed = "", requests = 0, seen = 0
  const mark = document.createElement("div")
  mark.setAttribute("role", "status")
  mark.style.cssText = "position:fixed;right:1em;bottom:1em;padding:0.4em 0.8em;border:1px solid #888;color:#222;z-index:9"
  mark.hidden = true
  document.body.append(mark)
  const say = (words, color) => { mark.hidden = false; mark.textContent = words; mark.style.background = color }
  const refuse = (field, words) => {  // "": what is typed may stand
    field.parentElement.querySelectorAll(".refusal").forEach(each => each.remove())
    if (words) {
      const beside = document.createElement("div")
      beside.className = "refusal"
      beside.style.cssText = "color:#a94442;background:#f2dede;padding:0.2em 0.4em"
      beside.setAttribute("role", "alert")
      beside.textContent = `not saved: ${words}`
      field.parentElement.append(beside)
    }
  }
  const read = (field, most) => {  // null: nothing is typed; undefined: it is refused
    const text = field.value.trim(), number = Number(text.replace(",", "."))
    let words = ""
    if (text && !/^-?(\d+([.,]\d+)?|[.,]\d+)$/.test(text)) words = "no number; type it like 0.5 or 0,5"
    else if (number < 0) words = "below 0"
    else if (number > most) words = `above ${most}`
    refuse(field, words)
    return text === "" ? null : words ? undefined : number
  }
  GradeUI.prototype.save = function () {
    const values = {
      manual_score: read(this.$score[0], this.model.get("max_score")),
      extra_credit: read(this.$extra_credit[0], Infinity),
    }
    if (Object.values(values).includes(undefined)) return
    this.model.save(values)
    this.render()
  }
  const later = (field, seconds) => {
    clearTimeout(timers.get(field))
    timers.set(field, setTimeout(() => save(field), 1000 * seconds))
  }
  const save = field => {
    field.value = typed.get(field)  // the page may have put an old text back
    field.dispatchEvent(new Event("change", {bubbles: true}))
  }
  const forget = field => {
    clearTimeout(timers.get(field))
    timers.delete(field)
    typed.delete(field)
    refuse(field, "")
  }
  document.addEventListener("input", event => {
    const field = event.target.closest(fields)
    if (!field) return
    typed.set(field, field.value)
    refuse(field, "")
    say("not saved yet", "#fdf6e3")
    later(field, 1)
  })
  document.addEventListener("change", event => {
    const field = event.target.closest(fields)
    if (!field || !typed.has(field)) return
    clearTimeout(timers.get(field))
    timers.delete(field)
    const cell = field.closest(".nbgrader_cell")
    if (requests === seen) {  // it is refused, or nbgrader's script does not listen yet
      if (field.matches(points) && cell.querySelector(".refusal")) say("Not saved: see beside the field.", "#f2dede")
      else later(field, 1)
      return
    }
    seen = requests
    const together = field.matches(points) ? cell.querySelectorAll(points) : [field]
    together.forEach(each => { if (typed.has(each)) sent.add(each) })
    failed = ""
  })
  document.addEventListener("click", event => {  // these buttons take the place of what is typed
    const button = event.target.closest(".full-credit, .no-credit")
    if (button) button.closest(".nbgrader_cell").querySelectorAll(points).forEach(forget)
  }, true)
  jQuery.ajaxSetup({timeout: 20000})
  jQuery(document).ajaxSend((event, request, settings) => { requests += settings.type === "PUT" })
  jQuery(document).ajaxError((event, request, settings) => {
    if (settings.type === "PUT") failed = request.status === 400 ? request.responseText : unanswered
  })
  jQuery(document).ajaxStop(() => {
    if (failed) {
      say(`Not saved: ${failed}`, "#f2dede")
      sent.forEach(field => later(field, 5))
      return
    }
    typed.forEach((value, field) => {
      if (sent.has(field) && !timers.has(field)) typed.delete(field)
      else if (field.value !== value) field.value = value  // the answer has put the old back
    })
    sent.clear()
    if (!typed.size && !mark.hidden) say("saved", "#dff0d8")
  })
  window.addEventListener("beforeunload", event => { if (typed.size) event.preventDefault() })
})
