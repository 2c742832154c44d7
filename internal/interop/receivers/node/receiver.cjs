'use strict';

// A receiver of deliveries that verifies them with the npm package
// http-message-signatures. It knows nothing of Godwit's own code.
//
// argv: the directory with node_modules
// in:   JSON lines: {"start":{"cert":file,"key":file}} once, {"keys":[…]} at any time; the end of input ends the process
// out:  JSON lines: {"listening":url}, {"keys":n}, {"verdict":{…}}

const crypto = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const path = require('node:path');
const readline = require('node:readline');
const { createRequire } = require('node:module');

const load = createRequire(path.join(process.argv[2], 'package.json'));
const { httpbis, createVerifier } = load('http-message-signatures');
const { parseDictionary } = load('structured-headers');

const requiredFields = ['@method', '@target-uri', 'content-digest', 'content-type', 'idempotency-key'];
const requiredParams = ['created', 'keyid', 'nonce'];

let scheme = 'http';
let keys = new Map();
const nonces = new Set();

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

function setKeys(list) {
  keys = new Map(list.map(({ id, alg, secret, public_pem: pem }) => [id, {
    id,
    algs: [alg],
    verify: createVerifier(secret ? Buffer.from(secret, 'base64') : pem, alg),
  }]));
}

// The library leaves the digest to its user.
function checkDigest(fields, body) {
  const member = parseDictionary(fields.join(', ')).get('sha-256');
  const want = crypto.createHash('sha256').update(body).digest();
  if (!member || !Buffer.from(member[0]).equals(want)) throw new Error('content-digest differs from the body');
}

async function verify(req, body) {
  let signature = {};
  const valid = await httpbis.verifyMessage({
    keyLookup: async (params) => {
      const key = keys.get(params.keyid);
      if (key) signature = params;
      return key;
    },
    requiredFields,
    requiredParams,
    tolerance: 60,
    maxAge: 360, // the library adds the tolerance to the age
  }, {
    method: req.method,
    url: `${scheme}://${req.headers.host}${req.url}`,
    headers: req.headersDistinct,
  });
  if (!valid) throw new Error(valid === null ? 'no signature by a known key' : 'signature is not valid');
  checkDigest(req.headersDistinct['content-digest'], body);
  const nonce = `${signature.keyid} ${signature.nonce}`;
  if (nonces.has(nonce)) throw new Error('nonce seen before');
  nonces.add(nonce);
  return signature.keyid;
}

async function handle(req, res) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const verdict = { accepted: false, method: req.method, target: req.url, idempotency_key: req.headers['idempotency-key'] ?? '' };
  try {
    verdict.key_id = await verify(req, Buffer.concat(chunks));
    verdict.accepted = true;
  } catch (error) {
    verdict.reason = error.message;
  }
  say({ verdict });
  res.writeHead(verdict.accepted ? 204 : 401).end();
}

function start({ cert, key }) {
  const answer = (req, res) => handle(req, res).catch(() => res.destroy());
  const server = cert
    ? https.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, answer)
    : http.createServer(answer);
  if (cert) scheme = 'https';
  server.listen(0, '127.0.0.1', () => say({ listening: `${scheme}://127.0.0.1:${server.address().port}` }));
}

readline.createInterface({ input: process.stdin })
  .on('line', (line) => {
    const command = JSON.parse(line);
    if (command.start) start(command.start);
    if (command.keys) {
      setKeys(command.keys);
      say({ keys: keys.size });
    }
  })
  .on('close', () => process.exit(0));
