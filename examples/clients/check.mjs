// Asks a guard about requests: node check.mjs http://127.0.0.1:9133 '/search?q=phone' ...
// Prints the status of each: 200 if it may pass. A guard that is away or slow refuses nothing.
const [base, ...uris] = process.argv.slice(2);
const timeout = Number(process.env.HOTPARAM_TIMEOUT ?? 0.5); // seconds

async function ask(path, question) {
  try {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(question),
      signal: AbortSignal.timeout(timeout * 1000),
    });
    return response.status === 200 ? await response.json() : {};
  } catch {
    return {}; // away, slow or wrong
  }
}

for (const uri of uris) {
  const answer = await ask('/v1/check', { method: 'GET', uri, addr: '192.0.2.1', hold: true });
  if (answer.allowed === false) {
    console.log(answer.status); // with answer.headers and answer.body
    continue;
  }
  if (answer.delay_ms) await new Promise((resolve) => setTimeout(resolve, answer.delay_ms));
  // ... the request is served here ...
  console.log(200);
  if (answer.ticket) await ask('/v1/done', { ticket: answer.ticket, bytes: 0 });
}
