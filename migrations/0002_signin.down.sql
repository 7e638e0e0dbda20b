begin;

drop index events_organizations, events_tokens_of_tenant, events_organization_tokens;
drop table signin_links, sessions;

commit;
