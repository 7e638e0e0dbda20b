-- Signing out everywhere and the account page ask for the sessions of one customer. A
-- node of an older release goes on writing sessions without one.
begin;

alter table sessions add customer text collate "C" not null default '';
create index sessions_of_customer on sessions (p, customer);

commit;
