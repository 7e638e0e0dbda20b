package waterfall

import "github.com/countersign/countersign/policy"

// charts returns the amounts of investors and general partner in each tier.
func charts(s policy.Service) ([]policy.Chart, error) {
	_, answer, err := policy.RunExample(s, Evaluate)
	if err != nil {
		return nil, err
	}
	c := policy.Chart{Shape: policy.Stacked, Title: "What investors and manager get of each tier", Names: []string{"investors", "manager"}, Values: make([][]float64, 2),
		Caption: "The distribution of the example, tier after tier: investors first, then the manager catches up, then both share."}
	labels := map[string]string{"return_of_capital": "capital", "preferred_return": "preferred return", "gp_catch_up": "catch-up", "carried_interest": "carry"}
	for _, tier := range answer.Tiers {
		c.Labels = append(c.Labels, labels[tier.Name])
		c.Values[0], c.Values[1] = append(c.Values[0], tier.LP.Float()), append(c.Values[1], tier.GP.Float())
	}
	return []policy.Chart{c}, nil
}
