-- What the ledger's payments were settled by is asked at every start, and must not
-- take longer the more of them there are. The payload is canonical JSON, in which
-- a quoted text has escaped quotation marks: these octets are the member itself.
begin;

create index events_settled_modes on events (p, (position('"mode":"dev"'::bytea in payload))) where type = 'payment.settled';

commit;
