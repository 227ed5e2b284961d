(() => {
  const main = document.getElementById("queue");
  const at = (id) => document.getElementById(id);
  const base = location.pathname.replace(/\/$/, "");
  const words = main.dataset;
  let timer;

  function eta(ticket) {
    if (ticket.eta_ms === null) return words.unknown;
    const minutes = (ms) => Math.max(1, Math.ceil(ms / 60000));
    const [from, to] = (ticket.eta_range_ms || [ticket.eta_ms, ticket.eta_ms]).map(minutes);
    if (to <= 1) return words.soon;
    return words.minutes.replace("{n}", from === to ? from : from + "–" + to);
  }

  function show(ticket) {
    // The server decides what comes next: it lets in, or says that it is over.
    if (ticket.state !== "WAITING" && ticket.state !== "BEFORE_OPEN") return location.reload();
    if ((ticket.state === "WAITING") !== (words.state === "WAITING")) return location.reload();
    if (ticket.position === null) return;
    at("position").textContent = ticket.position.toLocaleString();
    at("ahead").textContent = words.ahead.replace("{n}", ticket.ahead.toLocaleString());
    at("eta").textContent = eta(ticket);
    const bar = at("progress");
    bar.value = Math.max(0, bar.max - ticket.ahead);
  }

  function poll(after) {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      try {
        const answer = await fetch(base + "/status", { credentials: "same-origin", cache: "no-store" });
        if (answer.status === 404 || answer.status === 410) return location.reload();
        const ticket = await answer.json();
        if (answer.ok) show(ticket);
        poll(answer.ok ? ticket.poll_after_ms : 10000);
      } catch {
        poll(10000);
      }
    }, after);
  }

  const events = new EventSource(base + "/events");
  events.addEventListener("ticket", (event) => { clearTimeout(timer); show(JSON.parse(event.data)); });
  events.onerror = () => { if (events.readyState === EventSource.CLOSED || !timer) poll(2000); };
})();
