-- The account page lists the agents a customer stands for: by who verified or claimed
-- them, without a look at every other event.
begin;

do $$
begin
    create index events_agents_of_customer on events (p, actor) where type in ('agent.claimed', 'agent.verified');
end
$$;

commit;
