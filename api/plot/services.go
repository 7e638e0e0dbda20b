package plot

import "github.com/countersign/countersign/policy"

// Figures draws the charts of a service's example. It returns none for a service without charts.
func Figures(s policy.Service) ([]Figure, error) {
	if s.Charts == nil {
		return []Figure{}, nil
	}
	list, err := s.Charts(s)
	if err != nil {
		return nil, err
	}
	figures := make([]Figure, len(list))
	for i, c := range list {
		if figures[i], err = (chart{Chart: c}).draw(); err != nil {
			return nil, err
		}
	}
	return figures, nil
}
