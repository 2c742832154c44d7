'use strict';

// A receiver of deliveries that verifies them as the documents tell their readers to: the checks of the Open Job Spec and
// CYBERCUBE samples and of the Standard Webhooks specification, with Node's own crypto. It knows nothing of Godwit's code.
//
// in:   JSON lines: {"start":{"cert":file,"key":file}} once, {"keys":[…]} at any time; the end of input ends the process
// out:  JSON lines: {"listening":url}, {"keys":n}, {"verdict":{…}}

const crypto = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const readline = require('node:readline');

const tolerance = 300;
let keys = [];

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

function checkAge(timestamp) {
  if (!/^\d+$/.test(timestamp ?? '')) throw new Error('Invalid timestamp');
  if (Math.abs(Math.floor(Date.now() / 1000) - Number(timestamp)) > tolerance) throw new Error('Timestamp outside tolerance window');
}

function same(a, b) {
  return a.length === b.length && crypto.timingSafeEqual(a, b);
}

// Open Job Spec and CYBERCUBE sign alike: the secret is used as the text it is.
function hexSignature(header, timestamp, body, text) {
  const mac = crypto.createHmac('sha256', text).update(`${timestamp}.`).update(body).digest('hex');
  return header.split(',').some((entry) => same(Buffer.from(entry.trim()), Buffer.from(`sha256=${mac}`)));
}

function standardSignature(header, id, timestamp, body, text) {
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  return header.split(' ').some((entry) => {
    const [version, value] = entry.split(',');
    const signature = Buffer.from(value ?? '', 'base64');
    if (version === 'v1' && text.startsWith('whsec_')) {
      const key = Buffer.from(text.slice('whsec_'.length), 'base64');
      return same(signature, crypto.createHmac('sha256', key).update(content).digest());
    }
    if (version === 'v1a' && text.startsWith('whpk_')) {
      const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(text.slice('whpk_'.length), 'base64')]);
      const key = crypto.createPublicKey({ key: der, format: 'der', type: 'spki' });
      return crypto.verify(null, content, key, signature);
    }
    return false;
  });
}

const dialects = {
  ojs: (h, body, text) => {
    checkAge(h['x-ojs-timestamp']);
    return hexSignature(h['x-ojs-signature'] ?? '', h['x-ojs-timestamp'], body, text);
  },
  cybercube: (h, body, text) => {
    if (!(h['x-webhook-signature'] ?? '').startsWith('sha256=')) throw new Error('Invalid signature format');
    checkAge(h['x-webhook-timestamp']);
    return hexSignature(h['x-webhook-signature'], h['x-webhook-timestamp'], body, text);
  },
  'standard-webhooks': (h, body, text) => {
    checkAge(h['webhook-timestamp']);
    return standardSignature(h['webhook-signature'] ?? '', h['webhook-id'], h['webhook-timestamp'], body, text);
  },
};

function verify(req, body) {
  for (const { id, alg, text } of keys) {
    if (dialects[alg](req.headers, body, text)) return id;
  }
  throw new Error('Signature mismatch');
}

async function handle(req, res) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const verdict = { accepted: false, method: req.method, target: req.url, idempotency_key: req.headers['idempotency-key'] ?? '' };
  try {
    verdict.key_id = verify(req, body);
    verdict.accepted = true;
    verdict.body = body.toString('utf8');
  } catch (error) {
    verdict.reason = error.message;
  }
  say({ verdict });
  res.writeHead(verdict.accepted ? 200 : 401, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify(verdict.accepted ? { received: true } : { error: verdict.reason }));
}

function start({ cert, key }) {
  const answer = (req, res) => handle(req, res).catch(() => res.destroy());
  const server = cert
    ? https.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, answer)
    : http.createServer(answer);
  const scheme = cert ? 'https' : 'http';
  server.listen(0, '127.0.0.1', () => say({ listening: `${scheme}://127.0.0.1:${server.address().port}` }));
}

readline.createInterface({ input: process.stdin })
  .on('line', (line) => {
    const command = JSON.parse(line);
    if (command.start) start(command.start);
    if (command.keys) {
      keys = command.keys;
      say({ keys: keys.length });
    }
  })
  .on('close', () => process.exit(0));
