#!/usr/bin/env node
// review.mjs: does those steps of the worksheet that a machine can do, over an
// unpacked export.
//
//   node review.mjs --keys jwks.json FOLDER
//
// It reads FOLDER/events.jsonl and trusts nothing else in it. Run verify.py first:
// that proves that the events are the ones that were signed; this says what they
// say. A line begins with the step's name in WORKSHEET.md and
//
//   OK       what the step asks for holds
//   EXPLAIN  somebody must explain this: write it into the worksheet
//   READ     what to read yourself, and where
//
// Exit code 0: nothing to explain. 1: something. 2: it could not be done.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { good, readKeys } from './verify.mjs';

// read returns the events in order; what a filter withheld has the payload null.
export function read(folder) {
  const lines = readFileSync(join(folder, 'events.jsonl'), 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => {
    const event = JSON.parse(line);
    return { ...event, payload: event.payload === null ? null : JSON.parse(event.payload) };
  });
}

const at = (event) => `sequence ${event.tseq} (${new Date(event.occurred_us / 1000).toISOString()})`;

export class Review {
  constructor(events, keys, partition = 0) {
    this.events = events;
    this.keys = keys;
    this.partition = partition; // of the ledger, which positions are of
    this.lines = [];
    this.shown = events.filter((e) => e.payload !== null);
    this.decisions = new Map(this.of('decision.recorded').map((e) => [e.payload.record.decisionId, e]));
    this.approvals = new Map(this.of('approval.recorded').map((e) => [e.payload.record.decisionId, e]));
    this.receipts = this.of('receipt.recorded');
  }

  of(type) { return this.shown.filter((e) => e.type === type); }

  say(step, word, text) { this.lines.push({ step, word, text }); }

  // found says what must be explained, or that nothing must.
  found(step, faults, fine) {
    if (!faults.length) this.say(step, 'OK', fine);
    for (const fault of faults) this.say(step, 'EXPLAIN', fault);
  }

  keysOfRecords() { // A3
    const used = this.shown.filter((e) => e.payload.integrity);
    const wrong = used.filter((e) => {
      const known = this.keys.get(e.payload.integrity.keyId);
      return !known || !good(known, { partition: this.partition, position: e.pos });
    });
    this.found('A3', wrong.map((e) => `${at(e)}: key ${e.payload.integrity.keyId} was not good at position ${e.pos}`),
      `${used.length} records, by ${new Set(used.map((e) => e.payload.integrity.keyId)).size} keys, each between its positions`);
  }

  sequence() { // A4
    const gaps = this.events.filter((e, i) => i > 0 && e.tseq !== this.events[i - 1].tseq + 1);
    this.found('A4', gaps.map((e) => `before ${at(e)} something is missing`),
      `${this.events.length} events, ${this.events[0].tseq} to ${this.events.at(-1).tseq} without a gap`);
    const withheld = this.events.length - this.shown.length;
    if (withheld) this.say('A4', 'EXPLAIN', `a filter withheld the content of ${withheld} events: the steps below say nothing about them`);
  }

  policies() { // B1, B2, B3, B4
    const activated = this.of('policy.activated');
    for (const { payload: p, ...e } of activated) {
      this.say('B1', 'READ', `version ${p.version} from ${at(e)} on, by ${p.activator}, written by ${p.author}: ${p.reason}; changed: ${p.changed.join(', ') || 'nothing'}`);
      this.say('B4', 'READ', `the limits of version ${p.version}: policies/${p.policyHash}.json`);
    }
    if (!activated.length) this.say('B1', 'READ', 'no version was activated in this period');
    this.found('B2', activated.filter((e) => e.payload.author === e.payload.activator).map((e) => `version ${e.payload.version} at ${at(e)} was activated by its author ${e.payload.author}`),
      'author and activator differ each time');
    this.found('B3', this.wrongPolicies(activated), `${this.decisions.size} decisions name the version that was in force`);
  }

  wrongPolicies(activated) {
    const faults = [];
    let before; // the policy of the first decisions, which was activated before this period
    for (const e of this.decisions.values()) {
      const { policyId, version, policyHash, activatedSequence } = e.payload.record.policy;
      const last = activated.findLast((a) => a.tseq < e.tseq);
      if (last) {
        const p = last.payload;
        if (policyHash !== p.policyHash || version !== p.version || policyId !== p.policyId || activatedSequence !== last.tseq) faults.push(`${at(e)}: names version ${version}, in force was ${p.version}`);
        continue;
      }
      before ??= policyHash;
      if (policyHash !== before || activatedSequence >= this.events[0].tseq) faults.push(`${at(e)}: names version ${version}, and none was activated between`);
    }
    if (before) this.say('B3', 'READ', `the first decisions rest on policies/${before}.json, activated before this period: ask for its reason`);
    return faults;
  }

  verdicts() { // C1, C2, C3
    const done = new Map(this.receipts.filter((r) => r.payload.record.outcome === 'fulfilled').map((r) => [r.payload.record.decisionId, r]));
    const count = { allow: 0, needs_review: 0, deny: 0 };
    const unapproved = [];
    const denied = [];
    for (const [id, e] of this.decisions) {
      const { decision } = e.payload.record;
      count[decision]++;
      const receipt = done.get(id);
      if (receipt && decision === 'deny') denied.push(`${id}, denied at ${at(e)}, was carried out: receipt at ${at(receipt)}`);
      if (receipt && decision === 'needs_review') unapproved.push(...this.approvalOf(id, e, receipt));
    }
    this.say('C1', 'READ', `${count.allow} allowed of ${this.decisions.size}: draw a sample from views/decisions.csv and compare intent and findings`);
    this.found('C2', unapproved, `${count.needs_review} needed a review; of those that were carried out each was approved before, by somebody else`);
    this.found('C3', denied, `${count.deny} denied, none of them carried out`);
  }

  approvalOf(id, decision, receipt) {
    const approval = this.approvals.get(id);
    if (!approval || approval.tseq > receipt.tseq) return [`${id} was carried out without an approval: receipt at ${at(receipt)}`];
    const { verdict, approvedBy, selfApproved } = approval.payload.record;
    if (verdict !== 'approved') return [`${id} was carried out although ${approvedBy} rejected it at ${at(approval)}`];
    return selfApproved || approvedBy === decision.payload.member ? [`${id} was approved at ${at(approval)} by ${approvedBy}, who had asked for it`] : [];
  }

  evidence(prior) { // D1 to D5
    const unbound = [];
    const settlements = new Map();
    for (const r of this.receipts) {
      const { decisionId, decisionRecordHash, bindingHash, settlementId } = r.payload.record;
      const decision = this.decisions.get(decisionId);
      const of = decision ? decision.payload.integrity.recordHash : prior[decisionId];
      if (of !== decisionRecordHash || (decision && decision.payload.record.bindingHash !== bindingHash)) unbound.push(`${at(r)}: the receipt is not bound to ${decisionId}`);
      if (settlementId) settlements.set(settlementId, [...(settlements.get(settlementId) ?? []), r]);
    }
    this.say('D1', 'READ', `views/receipts.csv and views/decisions.csv: each payment in your books needs a decision there`);
    this.found('D2', unbound, `${this.receipts.length} receipts carry the hashes of their decisions`);
    this.say('D3', 'READ', `${settlements.size} settlements: compare amount, recipient and network with the chain or the provider`);
    this.found('D4', [...settlements].filter(([, list]) => list.length > 1).map(([id, list]) => `settlement ${id} is named by receipts at ${list.map(at).join(' and ')}`), 'no settlement is named twice');
    this.found('D5', this.receipts.filter((r) => r.payload.record.late || r.payload.record.conformance !== 'conforming').map((r) => {
      const { decisionId, conformance, late, findings } = r.payload.record;
      return `receipt at ${at(r)} for ${decisionId}: ${[late && 'late', conformance !== 'conforming' && conformance].filter(Boolean).join(', ')} (${findings.map((f) => f.ruleId).join(', ')})`;
    }), 'no receipt is late or in conflict with its decision');
  }
}

function main(args) {
  const keysAt = args.indexOf('--keys');
  const folder = args.find((_, i) => keysAt < 0 || (i !== keysAt && i !== keysAt + 1));
  if (keysAt < 0 || !folder) {
    console.error('usage: node review.mjs --keys jwks.json FOLDER');
    return 2;
  }
  const jwks = readFileSync(args[keysAt + 1]);
  const events = read(folder);
  if (!events.length) throw new Error('events.jsonl is empty');
  const { record } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  const review = new Review(events, readKeys(jwks.toString('utf8')), record.partition ?? 0);
  review.say('A1', 'READ', `SHA-256 of the keys, to compare with what you were told: ${createHash('sha256').update(jwks).digest('hex')}`);
  review.keysOfRecords();
  review.sequence();
  review.policies();
  review.verdicts();
  review.evidence(record.priorDecisions);
  for (const { step, word, text } of review.lines) console.log(`${step}  ${word.padEnd(7)}  ${text}`);
  return review.lines.some((l) => l.word === 'EXPLAIN') ? 1 : 0;
}

if (process.argv[1]?.endsWith('review.mjs')) {
  try {
    process.exitCode = main(process.argv.slice(2));
  } catch (error) {
    console.error(`review.mjs: ${error.message}`);
    process.exitCode = 2;
  }
}
