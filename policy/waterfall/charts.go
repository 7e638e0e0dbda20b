package waterfall

import "github.com/countersign/countersign/policy"

// charts returns the amounts of investors and general partner in each tier.
func charts(s policy.Service) ([]policy.Chart, error) {
	_, answer, err := policy.RunExample(s, Evaluate)
	if err != nil {
		return nil, err
	}
	c := policy.Chart{Shape: policy.Stacked, Title: "Amounts of investors and manager in each tier", Names: []string{"investors", "manager"}, Values: make([][]float64, 2),
		Caption: "Tiers of the example's distribution: first the investors are paid, then the manager gets the catch-up, then both share the rest."}
	labels := map[string]string{"return_of_capital": "capital", "preferred_return": "preferred return", "gp_catch_up": "catch-up", "carried_interest": "carry"}
	for _, tier := range answer.Tiers {
		c.Labels = append(c.Labels, labels[tier.Name])
		c.Values[0], c.Values[1] = append(c.Values[0], tier.LP.Float()), append(c.Values[1], tier.GP.Float())
	}
	return []policy.Chart{c}, nil
}
